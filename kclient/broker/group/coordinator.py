"""GroupCoordinator: membership of the classic group protocol, as clients ask for it."""

from __future__ import annotations

import copy
import threading
from collections.abc import Sequence

from kclient.broker.config import BrokerConfig
from kclient.broker.group.group import Group, GroupState
from kclient.broker.group.group_store import GroupStore, group_tombstones
from kclient.broker.group.member import JoinCallback, JoinRequest, Member, SyncCallback, join_failure
from kclient.broker.group.offsets import GroupOffsets
from kclient.broker.group.rebalance import Rebalancer
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import (
    CoordinatorNotAvailableError,
    Errors,
    GroupIdNotFoundError,
    GroupMaxSizeReachedError,
    GroupNotEmptyError,
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    InvalidGroupIdError,
    InvalidSessionTimeoutError,
    KafkaError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from kclient.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember
from kclient.protocol.messages.list_groups import ListedGroup
from kclient.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kclient.utils.log_context import LogContext
from kclient.utils.time import Time

_S = GroupState
_TYPE = "classic"


class GroupCoordinator:
    """Coordinates all groups. Thread-safe: each group has a lock, and the dictionary of groups one of its
    own, under which no group's lock is taken.
    """

    def __init__(
        self,
        store: GroupStore,
        config: BrokerConfig,
        time: Time,
        log_context: LogContext,
        *,
        reaper_enabled: bool = True,
    ) -> None:
        self._store = store
        self._config = config
        self._time = time
        self._log = log_context.logger(__name__)
        self._lock = threading.Lock()
        self._groups: dict[str, Group] = {}
        self.rebalancer = Rebalancer(
            store,
            time,
            log_context,
            initial_delay_ms=config.group_initial_rebalance_delay_ms,
            reaper_enabled=reaper_enabled,
        )
        self.offsets = GroupOffsets(self, store, time, log_context, config)

    def load(self) -> None:
        """Read the groups there were; their members have a session's time to be heard of again. Raises KafkaError."""
        groups = self._store.load()
        for group in groups.values():
            for member in group.members.values():
                self.rebalancer.sessions.heard_of(group, member)
        with self._lock:
            self._groups = groups

    def shutdown(self) -> None:
        """Let no time run out any more. Idempotent."""
        self.rebalancer.purgatory.shutdown()

    def coordinator_partition(self, group_id: str) -> TopicPartition:
        """Return the partition of a group's records, which decides on its coordinator; makes their topic if need be.

        Raises CoordinatorNotAvailableError.
        """
        self._store.create_topic()
        return self._store.partition_for(group_id)

    # Membership

    def join(self, request: JoinRequest, callback: JoinCallback) -> None:
        """A member joins: `callback` gets the next generation, later, or an error. Never raises KafkaError."""
        try:
            self._join(request, callback)
        except KafkaError as error:
            callback(join_failure(request.member_id, Errors.code_for(error)))

    def sync(self, request: SyncGroupRequest, callback: SyncCallback) -> None:
        """A member asks for its assignment: `callback` gets it, perhaps later, or an error. Never raises KafkaError."""
        try:
            self._sync(request, callback)
        except KafkaError as error:
            callback(SyncGroupResponse(error_code=Errors.code_for(error)))

    def heartbeat(self, group_id: str, generation_id: int, member_id: str, instance_id: str | None) -> None:
        """A member is alive. Raises RebalanceInProgressError if it has to join again, and the errors of a
        member that is not in the group.
        """
        group = self.existing_group(group_id, UnknownMemberIdError)
        with group.lock:
            member = self._validated(group, member_id, instance_id, generation_id)
            self.rebalancer.sessions.heard_of(group, member)
            # A member may begin its heartbeats before it has its assignment, so that COMPLETING_REBALANCE is
            # no error.
            if group.is_in(_S.PREPARING_REBALANCE):
                raise RebalanceInProgressError

    def leave(self, group_id: str, leaving: Sequence[tuple[str, str | None]]) -> list[int]:
        """Members, each by its id and instance id, leave. Returns an error code for each.

        A static member may be named by its instance id alone, as tools do. Raises InvalidGroupIdError and,
        for a group that is not there, UnknownMemberIdError.
        """
        group = self.existing_group(group_id, UnknownMemberIdError)
        with group.lock:
            if group.is_in(_S.DEAD):
                raise CoordinatorNotAvailableError
            codes = []
            removed: dict[str, Member] = {}
            pending_left = False
            for member_id, instance_id in leaving:
                if instance_id is None and group.forget_pending(member_id):
                    pending_left = True
                    codes.append(0)
                    continue
                known_id = member_id if member_id else group.member_id_of(instance_id)
                try:
                    member = group.validated_member(known_id or "", instance_id)
                except KafkaError as error:
                    codes.append(Errors.code_for(error))
                    continue
                removed[member.member_id] = member
                codes.append(0)
            if removed:
                self.rebalancer.remove(group, removed.values(), "it left")
            elif pending_left:
                self.rebalancer.after_removal(group, "an expected member left")
            return codes

    # What tools ask

    def describe(self, group_id: str) -> DescribedGroup | None:
        """The group; None if there is none. Raises NotCoordinatorError if that cannot be told."""
        group = self.group(group_id)
        if group is None:
            return None
        with group.lock:
            decided = group.is_in(_S.STABLE)
            protocol_name = group.protocol_name or ""
            return DescribedGroup(
                group_id=group_id,
                group_state=group.state.value,
                protocol_type=group.protocol_type or "",
                protocol_data=protocol_name if decided else "",
                members=[
                    DescribedGroupMember(
                        member_id=member.member_id,
                        group_instance_id=member.instance_id,
                        client_id=member.client_id,
                        client_host=member.client_host,
                        member_metadata=member.metadata_for(protocol_name) if decided else b"",
                        member_assignment=member.assignment,
                    )
                    for member in group.members.values()
                ],
            )

    def list(self) -> Sequence[ListedGroup]:
        """Every group."""
        found = []
        for group in self.all_groups():
            with group.lock:
                if not group.is_in(_S.DEAD):
                    found.append(
                        ListedGroup(
                            group_id=group.id,
                            protocol_type=group.protocol_type or "",
                            group_state=group.state.value,
                            group_type=_TYPE,
                        )
                    )
        return found

    def delete(self, group_id: str) -> None:
        """Delete a group without members, and its offsets. Raises GroupIdNotFoundError, GroupNotEmptyError,
        InvalidGroupIdError and the errors of writing.
        """
        group = self.existing_group(group_id, GroupIdNotFoundError)
        with group.lock:
            if group.is_in(_S.DEAD):
                raise GroupIdNotFoundError(f"There is no group {group_id}")
            if not group.is_in(_S.EMPTY):
                raise GroupNotEmptyError(f"Group {group_id} has members")
            self.remove_group(group)
        self._log.info("Deleted group %s", group_id)

    # For the parts of the coordinator

    def group(self, group_id: str) -> Group | None:
        """The group, None if there is none. Raises NotCoordinatorError if that cannot be told."""
        group = self._groups.get(group_id)
        if group is None:
            self._store.check_known(group_id)
        return group

    def existing_group(self, group_id: str, missing: type[KafkaError]) -> Group:
        """The group that a request is about. Raises InvalidGroupIdError, and `missing` if there is none."""
        _check_group_id(group_id)
        group = self.group(group_id)
        if group is None:
            raise missing(f"There is no group {group_id}")
        return group

    def group_or_new(self, group_id: str) -> Group:
        """The group, made if there is none."""
        with self._lock:
            group = self._groups.get(group_id)
            if group is None:
                group = self._groups[group_id] = Group(group_id, self._time.wall_ms())
            return group

    def all_groups(self) -> Sequence[Group]:
        """Every group as of now."""
        with self._lock:
            return [*self._groups.values()]

    def remove_group(self, group: Group) -> None:
        """Remove an empty group with its offsets; called with its lock held. Raises the errors of writing."""
        stored = group.generation_id > 0
        entries = group_tombstones(group, [*group.offsets], whole=stored)
        if entries:
            self._store.write(group.id, entries)
        group.offsets.clear()
        group.transition_to(_S.DEAD, self._time.wall_ms())
        with self._lock:
            if self._groups.get(group.id) is group:
                del self._groups[group.id]

    # Joining

    def _join(self, request: JoinRequest, callback: JoinCallback) -> None:
        _check_group_id(request.group_id)
        config = self._config
        lowest, highest = config.group_min_session_timeout_ms, config.group_max_session_timeout_ms
        if not lowest <= request.session_timeout_ms <= highest:
            raise InvalidSessionTimeoutError(
                f"session.timeout.ms is {request.session_timeout_ms}; the broker accepts {lowest} to {highest}"
            )
        self._store.partition_for(request.group_id)
        group = self.group(request.group_id)
        if group is None:
            if request.member_id:
                raise UnknownMemberIdError(f"There is no group {request.group_id}")
            group = self.group_or_new(request.group_id)
        with group.lock:
            if group.is_in(_S.DEAD):
                raise CoordinatorNotAvailableError
            if not self._has_room(group, request.member_id):
                member = group.members.get(request.member_id)
                if member is not None:
                    self.rebalancer.remove(group, [member], "the group is full")
                raise GroupMaxSizeReachedError(
                    f"Group {group.id} has its {config.group_max_size} members already"
                )
            if not group.supports(request.protocol_type, request.protocols):
                raise InconsistentGroupProtocolError(
                    f"No protocol of the member is one of those that all members of group {group.id} have"
                )
            if not request.member_id:
                self._join_unknown(group, request, callback)
            elif request.member_id in group.pending_members:
                self._add(group, request.member_id, request, callback)
            else:
                self._join_known(group, request, callback)
            self.rebalancer.joined(group)

    def _has_room(self, group: Group, member_id: str) -> bool:
        if group.is_in(_S.EMPTY):
            return True
        limit = self._config.group_max_size
        if member_id in group.members:
            # Those who wait already are in; of the others, as many as there is room for.
            member = group.members[member_id]
            awaiting = sum(other.awaits_join for other in group.members.values())
            return len(group.members) <= limit or member.awaits_join or awaiting < limit
        return len(group.members) + len(group.pending_members.keys() - {member_id}) < limit

    def _join_unknown(self, group: Group, request: JoinRequest, callback: JoinCallback) -> None:
        if request.instance_id is not None:
            new_id = f"{request.instance_id}-{Uuid.random()}"
            known_id = group.member_id_of(request.instance_id)
            if known_id is None:
                self._add(group, new_id, request, callback)
            else:
                self._rejoin_static(group, group.members[known_id], new_id, request, callback)
            return
        new_id = f"{request.client_id}-{Uuid.random()}"
        if request.requires_known_id:
            # The client must come back with the id: one that times out and tries again would otherwise leave
            # a member behind at each try, for which every rebalance waits (KIP-394).
            self.rebalancer.expect_member(group, new_id, request.session_timeout_ms)
            callback(join_failure(new_id, Errors.MEMBER_ID_REQUIRED))
            return
        self._add(group, new_id, request, callback)

    def _add(self, group: Group, member_id: str, request: JoinRequest, callback: JoinCallback) -> None:
        member = Member(
            member_id,
            request.instance_id,
            request.client_id,
            request.client_host,
            request.rebalance_timeout_ms,
            request.session_timeout_ms,
            request.protocol_type,
            request.protocols,
        )
        self.rebalancer.add_member(group, member, callback, f"{member_id} joined {request.reason}".rstrip())

    def _join_known(self, group: Group, request: JoinRequest, callback: JoinCallback) -> None:
        member = group.validated_member(request.member_id, request.instance_id)
        unchanged = list(member.protocols) == list(request.protocols)
        leads = group.is_leader(member.member_id)
        # An unchanged member that asks again did not get the answer, or is a follower that was too late to
        # notice that there was no rebalance. A leader that asks again has something new to tell, such as more
        # partitions.
        answered_already = unchanged and (
            group.is_in(_S.COMPLETING_REBALANCE) or (group.is_in(_S.STABLE) and not leads)
        )
        if answered_already:
            callback(group.generation_for(member.member_id))
            return
        reason = f"{member.member_id} joined again {request.reason}".rstrip()
        self.rebalancer.rejoin(group, member, request, callback, reason)

    def _rejoin_static(
        self, group: Group, member: Member, new_id: str, request: JoinRequest, callback: JoinCallback
    ) -> None:
        """A static member was restarted: if nothing else has changed it goes on where it was (KIP-345)."""
        former_leader = group.leader_id
        was = copy.copy(member)
        group.replace_static_member(member, new_id)
        group.update_member(member, request)
        self.rebalancer.sessions.heard_of(group, member)
        if not group.is_in(_S.STABLE) or group.select_protocol() != group.protocol_name:
            reason = f"static member {request.instance_id} came back as {new_id}"
            self.rebalancer.rejoin(group, member, request, callback, reason)
            return
        try:
            self.rebalancer.store_members(group)
        except KafkaError:
            # After a restart of the broker only the old id would be known: so be it now.
            group.replace_static_member(member, was.member_id)
            group.update_member(member, was)
            self.rebalancer.sessions.heard_of(group, member)
            raise
        response = group.generation_for(new_id)
        if request.can_skip_assignment:
            response.skip_assignment = group.is_leader(new_id)
        else:
            # A leader that does not know how to skip the assignment must take itself for a follower, or
            # it would assign anew what the others have.
            response.leader, response.members = former_leader or "", []
        callback(response)

    # Syncing

    def _sync(self, request: SyncGroupRequest, callback: SyncCallback) -> None:
        group = self.existing_group(request.group_id, UnknownMemberIdError)
        with group.lock:
            member = self._validated(
                group, request.member_id, request.group_instance_id, request.generation_id
            )
            for given, known in (
                (request.protocol_type, group.protocol_type),
                (request.protocol_name, group.protocol_name),
            ):
                if given is not None and given != known:
                    raise InconsistentGroupProtocolError(f"Group {group.id} uses {known}, not {given}")
            if group.is_in(_S.PREPARING_REBALANCE):
                raise RebalanceInProgressError
            if group.is_in(_S.STABLE):
                group.pending_sync.discard(member.member_id)
                self.rebalancer.sessions.heard_of(group, member)
                callback(group.assignment_for(member))
                return
            member.fail_sync(Errors.REBALANCE_IN_PROGRESS)  # of a request that it gave up
            member.sync_callback = callback
            group.pending_sync.discard(member.member_id)
            if group.is_leader(member.member_id):
                parts = {assigned.member_id: bytes(assigned.assignment) for assigned in request.assignments}
                self.rebalancer.store_assignment(
                    group, {known: parts.get(known, b"") for known in group.members}
                )

    @staticmethod
    def _validated(group: Group, member_id: str, instance_id: str | None, generation_id: int) -> Member:
        if group.is_in(_S.DEAD):
            # The object was looked up just before the group was removed; there may be a new one by now.
            raise CoordinatorNotAvailableError
        member = group.validated_member(member_id, instance_id)
        if generation_id != group.generation_id:
            raise IllegalGenerationError(
                f"Group {group.id} has generation {group.generation_id}, not {generation_id}"
            )
        return member


def _check_group_id(group_id: str) -> None:
    if not group_id:
        raise InvalidGroupIdError("The group id is empty")
