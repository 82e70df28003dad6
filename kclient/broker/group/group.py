"""Group: the members of one consumer group, its state, and its committed offsets."""

from __future__ import annotations

import enum
import threading
from collections import Counter
from collections.abc import Iterable

import attrs

from kclient.broker.group.member import JoinRequest, Member, Protocols
from kclient.broker.timer import TimerTask
from kclient.common.topic_partition import TopicPartition
from kclient.errors import Errors, FencedInstanceIdError, IllegalStateError, SchemaError, UnknownMemberIdError
from kclient.protocol.codec import decode_prefix
from kclient.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from kclient.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from kclient.protocol.messages.sync_group import SyncGroupResponse

CONSUMER_PROTOCOL_TYPE = "consumer"


class GroupState(enum.Enum):
    """The state of a group. The values are the names that tools show."""

    EMPTY = "Empty"
    """No members, perhaps offsets."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """Waiting for the members to join again."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """Waiting for the leader's assignment."""
    STABLE = "Stable"
    DEAD = "Dead"
    """Removed; whoever still holds the object must look the group up again."""


_S = GroupState
VALID_PREVIOUS: dict[GroupState, frozenset[GroupState]] = {
    _S.EMPTY: frozenset({_S.PREPARING_REBALANCE}),
    _S.PREPARING_REBALANCE: frozenset({_S.STABLE, _S.COMPLETING_REBALANCE, _S.EMPTY}),
    _S.COMPLETING_REBALANCE: frozenset({_S.PREPARING_REBALANCE}),
    _S.STABLE: frozenset({_S.COMPLETING_REBALANCE}),
    _S.DEAD: frozenset(_S),
}


@attrs.frozen
class CommittedOffset:
    """An offset a group has committed."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int = -1
    """Time of expiry, for commits of old clients that give one; -1 leaves it to the broker's settings."""


class Group:
    """All state of one group, guarded by `lock`, which is held by whoever calls any method."""

    def __init__(self, group_id: str, now_wall_ms: int, state: GroupState = GroupState.EMPTY) -> None:
        self.id = group_id
        self.lock = threading.RLock()
        self.state = state
        self.state_timestamp_ms = now_wall_ms
        """Wall-clock time of the last change of state."""
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.generation_id = 0
        self.leader_id: str | None = None
        self.members: dict[str, Member] = {}
        self.pending_members: dict[str, TimerTask] = {}
        """Ids given to members that have not joined with them yet (KIP-394), and what ends each."""
        self.pending_sync: set[str] = set()
        """Members that have been told the generation and have not asked for their assignment."""
        self.sync_expiry: TimerTask | None = None
        """The end of the time in which members may ask for their assignment in this generation."""
        self.new_member_added = False
        """True if a member joined while a new group waited for more of them."""
        self.offsets: dict[TopicPartition, CommittedOffset] = {}
        self._static_members: dict[str, str] = {}
        self._protocol_counts: Counter[str] = Counter()

    def is_in(self, *states: GroupState) -> bool:
        """True if the state is one of `states`."""
        return self.state in states

    def transition_to(self, state: GroupState, now_wall_ms: int) -> None:
        """Change the state; raises IllegalStateError for a change that the table does not have."""
        if self.state not in VALID_PREVIOUS[state]:
            raise IllegalStateError(f"Group {self.id} cannot go from {self.state.value} to {state.value}")
        self.state = state
        self.state_timestamp_ms = now_wall_ms

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest that any member needs to join again."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    # Members

    def is_leader(self, member_id: str) -> bool:
        """True if this member is the leader."""
        return self.leader_id == member_id

    def member_id_of(self, instance_id: str | None) -> str | None:
        """The id that the static member with this name has now."""
        return None if instance_id is None else self._static_members.get(instance_id)

    def validated_member(self, member_id: str, instance_id: str | None) -> Member:
        """The member that a request says it comes from.

        Raises UnknownMemberIdError, and FencedInstanceIdError if another one has taken the static member's
        name.
        """
        if instance_id is not None:
            current = self._static_members.get(instance_id)
            if current is None:
                raise UnknownMemberIdError(
                    f"Group {self.id} has no member with group.instance.id {instance_id}"
                )
            if current != member_id:
                raise FencedInstanceIdError(
                    f"group.instance.id {instance_id} of group {self.id} belongs to a newer member"
                )
        member = self.members.get(member_id)
        if member is None:
            raise UnknownMemberIdError(f"Group {self.id} has no member {member_id}")
        return member

    def add(self, member: Member) -> None:
        """Take a member in; the first one becomes the leader."""
        if not self.members:
            self.protocol_type = member.protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self._count(member.protocols, 1)
        if member.instance_id is not None:
            self._static_members[member.instance_id] = member.member_id
        self.forget_pending(member.member_id)

    def forget_pending(self, member_id: str) -> bool:
        """Expect nobody with this id any more; False if nobody was."""
        expiry = self.pending_members.pop(member_id, None)
        if expiry is not None:
            expiry.cancel()
        return expiry is not None

    def remove(self, member: Member) -> None:
        """Let a member go, with whatever request of it is parked left to the caller."""
        del self.members[member.member_id]
        self._count(member.protocols, -1)
        if (
            member.instance_id is not None
            and self._static_members.get(member.instance_id) == member.member_id
        ):
            del self._static_members[member.instance_id]
        self.pending_sync.discard(member.member_id)
        if member.expiry is not None:
            member.expiry.cancel()
        if self.is_leader(member.member_id):
            # Somebody who waits for the next generation, as that one can be told that it leads.
            awaiting = (other for other in self.members.values() if other.awaits_join)
            successor = next(awaiting, None) or next(iter(self.members.values()), None)
            self.leader_id = None if successor is None else successor.member_id

    def replace_static_member(self, old: Member, new_member_id: str) -> Member:
        """Give a static member that came back a new id. Requests parked under the old one are fenced."""
        old.fail_join(Errors.FENCED_INSTANCE_ID)
        old.fail_sync(Errors.FENCED_INSTANCE_ID)
        if old.expiry is not None:
            old.expiry.cancel()
            old.expiry = None
        del self.members[old.member_id]
        self.pending_sync.discard(old.member_id)
        was_leader = self.is_leader(old.member_id)
        old.member_id = new_member_id
        self.members[new_member_id] = old
        if old.instance_id is not None:
            self._static_members[old.instance_id] = new_member_id
        if was_leader:
            self.leader_id = new_member_id
        return old

    def update_member(self, member: Member, said: JoinRequest | Member) -> None:
        """Take over protocols and timeouts that a member says when it joins again."""
        self._count(member.protocols, -1)
        member.protocols = said.protocols
        self._count(said.protocols, 1)
        member.rebalance_timeout_ms = said.rebalance_timeout_ms
        member.session_timeout_ms = said.session_timeout_ms

    @property
    def all_joined(self) -> bool:
        """True if the next generation need not wait for anyone."""
        return not self.pending_members and all(member.awaits_join for member in self.members.values())

    def elect_joined_leader(self) -> bool:
        """Make sure that the leader is one who can be told so; False if nobody waits for the next generation."""
        leader = None if self.leader_id is None else self.members.get(self.leader_id)
        if leader is not None and leader.awaits_join:
            return True
        successor = next((member for member in self.members.values() if member.awaits_join), None)
        if successor is None:
            return False
        self.leader_id = successor.member_id
        return True

    # Protocols

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """True if a member with these protocols can be in the group."""
        if not protocol_type or not protocols:
            return False
        if not self.members:
            return True
        return self.protocol_type == protocol_type and any(
            name in self._candidates() for name, _ in protocols
        )

    def select_protocol(self) -> str:
        """The protocol that all members have and most prefer."""
        if not self.members:
            raise IllegalStateError(f"Group {self.id} has no members to choose a protocol")
        candidates = self._candidates()
        votes = Counter(
            next(name for name, _ in member.protocols if name in candidates)
            for member in self.members.values()
        )
        return votes.most_common(1)[0][0]

    def next_generation(self, now_wall_ms: int) -> None:
        """Begin the next generation with the members there are."""
        self.generation_id += 1
        if self.members:
            self.protocol_name = self.select_protocol()
            self.transition_to(GroupState.COMPLETING_REBALANCE, now_wall_ms)
        else:
            self.protocol_name = None
            self.leader_id = None
            self.transition_to(GroupState.EMPTY, now_wall_ms)
        self.pending_sync.clear()

    def generation_for(self, member_id: str) -> JoinGroupResponse:
        """The generation as this member is told it; the leader learns the members."""
        name = self.protocol_name or ""
        return JoinGroupResponse(
            generation_id=self.generation_id,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            leader=self.leader_id or "",
            member_id=member_id,
            members=[
                JoinGroupResponseMember(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    metadata=member.metadata_for(name),
                )
                for member in (self.members.values() if self.is_leader(member_id) else ())
            ],
        )

    def assignment_for(self, member: Member) -> SyncGroupResponse:
        """The answer to the SyncGroup request of a member."""
        return SyncGroupResponse(
            protocol_type=self.protocol_type, protocol_name=self.protocol_name, assignment=member.assignment
        )

    def subscribes_to(self, topic: str) -> bool:
        """True if a member reads `topic`, or may do so for all one can tell."""
        if self.protocol_type != CONSUMER_PROTOCOL_TYPE:
            return False
        if self.protocol_name is None:
            return bool(self.members)
        subscriptions = [
            _subscribed(member.metadata_for(self.protocol_name)) for member in self.members.values()
        ]
        return any(topics is None or topic in topics for topics in subscriptions)

    def _candidates(self) -> set[str]:
        count = len(self.members)
        return {name for name, supporters in self._protocol_counts.items() if supporters == count}

    def _count(self, protocols: Iterable[tuple[str, bytes]], change: int) -> None:
        for name in {name for name, _ in protocols}:
            self._protocol_counts[name] += change
            if not self._protocol_counts[name]:
                del self._protocol_counts[name]


def _subscribed(metadata: bytes) -> list[str] | None:
    """The topics in a consumer's metadata, None if it cannot be read."""
    version = int.from_bytes(metadata[:2], "big", signed=True)
    if len(metadata) < 2 or version < 0:
        return None
    # A newer version begins like the newest one known, with more behind it.
    version = min(version, ConsumerProtocolSubscription.MAX_VERSION)
    try:
        return decode_prefix(ConsumerProtocolSubscription, version, metadata, 2)[0].topics
    except SchemaError:
        return None
