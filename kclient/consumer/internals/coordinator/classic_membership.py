"""Being a member of a classic group: join, sync, heartbeat, leave (KIP-62, KIP-345, KIP-394, KIP-800)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import attrs

from kclient.client.coordinators import CoordinatorFinder
from kclient.client.request_sender import NEVER, Reply, RequestSender
from kclient.common.cluster import Cluster
from kclient.common.offsets import ConsumerGroupMetadata
from kclient.consumer.assignor.base import ConsumerPartitionAssignor
from kclient.consumer.group_membership_operation import GroupMembershipOperation
from kclient.consumer.internals.coordinator import group_protocol
from kclient.consumer.internals.coordinator.generation import Generation
from kclient.consumer.internals.coordinator.group_leader import GroupLeader
from kclient.consumer.internals.coordinator.heartbeat import Heartbeat
from kclient.consumer.internals.coordinator.member_requests import MembershipSettings
from kclient.consumer.internals.coordinator.member_state import WITH_HEARTBEAT, MemberState
from kclient.consumer.internals.coordinator.membership import Membership
from kclient.consumer.internals.coordinator.own_share import OwnShare
from kclient.consumer.internals.group_metrics import GroupMetrics
from kclient.consumer.internals.rebalance_callback import RebalanceCallback
from kclient.consumer.internals.subscription_state import SubscriptionState
from kclient.errors import (
    Errors,
    FencedInstanceIdError,
    GroupAuthorizationError,
    InconsistentGroupProtocolError,
    KafkaError,
    SchemaError,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.heartbeat import HeartbeatResponse
from kclient.protocol.messages.join_group import JoinGroupResponse
from kclient.protocol.messages.leave_group import LeaveGroupRequest
from kclient.protocol.messages.sync_group import SyncGroupResponse
from kclient.utils.backoff import ExponentialBackoff
from kclient.utils.futures import CompletableFuture
from kclient.utils.log_context import LogContext, Logger, RepeatedWarning

_JOIN_GRACE_MS = 5000  # a JoinGroup is waited for beyond the rebalance timeout, at whose end it is answered


@attrs.define(kw_only=True, eq=False, repr=False)
class ClassicMembership(Membership):
    """The state machine of a member whose group's leader assigns; `state` may be read by any thread.

    It stands still in REVOKING and ASSIGNING until it hears that the callbacks are done, while heartbeats go on.
    """

    PROTOCOL: ClassVar[str] = "classic"

    _settings: MembershipSettings
    _leader: GroupLeader
    _assignors: Mapping[str, ConsumerPartitionAssignor]
    _subscription: SubscriptionState
    _share: OwnShare
    _finder: CoordinatorFinder
    _sender: RequestSender
    heartbeat: Heartbeat
    _backoff: ExponentialBackoff
    _on_fatal: Callable[[KafkaError], None]
    _metrics: GroupMetrics
    _log_context: LogContext
    _log: Logger = attrs.field(init=False)
    _warning: RepeatedWarning = attrs.field(init=False)
    state: MemberState = attrs.field(default=MemberState.UNJOINED, init=False)
    generation: Generation = attrs.field(factory=Generation, init=False)
    _attempt: int = attrs.field(default=0, init=False)  # replies to requests of earlier attempts are ignored
    _failures: int = attrs.field(default=0, init=False)
    _retry_ms: int = attrs.field(default=0, init=False)
    _rejoin_reason: str | None = attrs.field(default="initial join", init=False)
    _lost: bool = attrs.field(default=False, init=False)
    _may_join: bool = attrs.field(default=False, init=False)
    _joined_topics: frozenset[str] | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self._log = self._log_context.logger(__name__)
        self._warning = RepeatedWarning(self._log)

    # What others ask.

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def expects_heartbeats(self) -> bool:
        return self.state in WITH_HEARTBEAT

    @property
    def rebalancing(self) -> bool:
        return self.state in (MemberState.JOINING, MemberState.SYNCING)

    def generation_for_commit(self) -> Generation | None:
        if self.state in (MemberState.REVOKING, MemberState.ASSIGNING, MemberState.STABLE):
            return self.generation_for_last_commit()
        return None

    def generation_for_last_commit(self) -> Generation | None:
        """The coordinator takes the old one until all have joined, and the new one once the leader has assigned."""
        return self.generation if self.generation.is_valid and not self._lost else None

    def metadata_of(self, generation: Generation) -> ConsumerGroupMetadata:
        return ConsumerGroupMetadata(
            self._settings.group_id, generation.id, generation.member_id, self._settings.group_instance_id
        )

    def polled(self, now_ms: int) -> bool:
        waited = not self._may_join
        self.heartbeat.polled_ms = now_ms
        self._may_join = True
        return waited

    # What happens to the member.

    def poll(self, now_ms: int) -> int:
        """Heartbeat and rejoin as needed."""
        if not self._subscription.has_auto_assigned_partitions():
            return NEVER
        wait_ms = NEVER
        if self.generation.is_valid and self.state in WITH_HEARTBEAT:
            wait_ms = self._poll_heartbeat(now_ms)
        if self._leader.assigning:
            wait_ms = min(wait_ms, self._poll_leader(now_ms))
        if self._rejoin_reason is not None:
            wait_ms = min(wait_ms, self._poll_rejoin(now_ms))
        return wait_ms

    def request_rejoin(self, reason: str) -> None:
        if self._rejoin_reason is None:
            self._log.info("Rejoining the group: %s", reason)
            self._rejoin_reason = reason

    def subscription_changed(self) -> None:
        if self._joined_topics is not None and self._joined_topics != self._subscription.subscription():
            self.request_rejoin("the subscribed topics changed")

    def metadata_updated(self, cluster: Cluster) -> None:
        """The pattern was matched anew, and a leader looks whether its assignment still fits."""
        if self._joined_topics is not None and self._joined_topics != self._subscription.subscription():
            self.request_rejoin("the topics that match the subscription changed")
        if self._leader.is_outdated(cluster):
            self.request_rejoin("the partitions of the group's topics changed")

    def callback_done(self, callback: RebalanceCallback) -> None:
        self._share.callback_done(callback)

    def commit_refused(self, code: int, sent: Generation, *, last: bool = False) -> Generation | None:
        place = self.generation_for_last_commit() if last else None
        joins = self.rebalancing or (self.state is MemberState.UNJOINED and self._may_join)
        passes = code == Errors.REBALANCE_IN_PROGRESS or (joins and code != Errors.UNKNOWN_MEMBER_ID)
        if place is not None and (passes or place != sent):
            return place
        if code == Errors.REBALANCE_IN_PROGRESS:
            self.request_rejoin("a commit was refused because the group is rebalancing")
        elif sent.is_valid and sent == self.generation and (last or not self.rebalancing):
            self.lose(f"a commit was refused with {Errors.name_of(code)}")
        return None

    def lose(self, cause: str) -> None:
        """The group does not know the member any more: its partitions are gone, and it joins anew."""
        self._log.warning("The group has removed this member: %s", cause)
        self.generation = Generation()
        self._lost = True
        self._abandon()
        self.request_rejoin(cause)

    def _stop_joining(self) -> None:
        """Take no part in the rebalance under way, and keep it from holding up what is sent next.

        A broker answers JoinGroup when all members have joined, and what comes behind it on its connection only then.
        """
        if not self.rebalancing:
            return
        self._abandon()
        self._may_join = False
        if self._finder.coordinator is not None:
            # Not only disconnected: a connection that has failed is not made again at once, a forgotten one is.
            self._sender.client.disconnect(self._finder.coordinator.id)
            self._sender.client.close_connection(self._finder.coordinator.id)

    def leave(
        self,
        reason: str,
        future: CompletableFuture[None],
        now_ms: int,
        operation: GroupMembershipOperation = GroupMembershipOperation.DEFAULT,
    ) -> None:
        generation, coordinator_known = self.generation, self._finder.known
        self._stop_joining()
        self._abandon()
        self.generation = Generation()
        self._lost = False
        self._may_join = False
        self._rejoin_reason = "joining again after leaving"
        if not generation.member_id or not coordinator_known or not self._leaves(operation):
            future.complete(None)
            return
        self._log.info("Leaving the group: %s", reason)

        def build(version: int) -> LeaveGroupRequest:
            return self._settings.leave(generation, reason, version)

        def on_reply(_: Reply) -> None:
            future.complete(None)  # not repeated if it failed: the session timeout does the same

        self._send(ApiKeys.LEAVE_GROUP, build, on_reply, now_ms)

    def _leaves(self, operation: GroupMembershipOperation) -> bool:
        """Return True if the coordinator is told; a static member goes silently, to find its place again (KIP-345)."""
        if operation is GroupMembershipOperation.DEFAULT:
            return self._settings.group_instance_id is None
        return operation is GroupMembershipOperation.LEAVE_GROUP

    def fail(self, error: KafkaError) -> None:
        self._may_join = False
        self._abandon()
        self._rejoin_reason = self._rejoin_reason or str(error)
        self._on_fatal(error)

    def fenced(self, error: KafkaError) -> None:
        self._lost = True
        self.fail(error)

    def _abandon(self) -> None:
        """Forget what is under way."""
        if self.rebalancing:
            self._metrics.rebalance_failed()
        self._attempt += 1
        self._leader.forget()
        self._joined_topics = None
        self._share.cancel()
        self.state = self.state.to(MemberState.UNJOINED)

    def _send(
        self,
        api_key: ApiKeys,
        build: Callable[[int], Any],
        on_reply: Callable[[Reply], None],
        now_ms: int,
        timeout_ms: int | None = None,
    ) -> None:
        coordinator = self._finder.coordinator
        assert coordinator is not None
        self._sender.send(coordinator, api_key, build, on_reply, now_ms, timeout_ms=timeout_ms)

    # Heartbeats.

    def _poll_heartbeat(self, now_ms: int) -> int:
        heartbeat = self.heartbeat
        wait_ms = heartbeat.wait_ms(now_ms)
        if wait_ms > 0:
            return wait_ms
        if heartbeat.poll_expired(now_ms):
            self._leave_stuck(now_ms)
            return NEVER
        if heartbeat.session_expired(now_ms):
            # The coordinator may have died; if it lives it will say what it thinks of this member.
            self._finder.mark_unknown("no heartbeat was answered within session.timeout.ms")
            heartbeat.reset(now_ms)
        if heartbeat.is_due(now_ms) and self._finder.coordinator is not None:
            self._send_heartbeat(now_ms)
        elif heartbeat.is_due(now_ms):
            return NEVER  # the coordinator is looked for, which gives another turn
        return heartbeat.wait_ms(now_ms)

    def _leave_stuck(self, now_ms: int) -> None:
        cause = "poll() was not called for max.poll.interval.ms; raise it, lower max.poll.records, or process faster"
        self.leave(cause, CompletableFuture(), now_ms)
        self._lost = True
        self._log.warning("Left the group: %s", cause)

    def _send_heartbeat(self, now_ms: int) -> None:
        generation = self.generation
        request = self._settings.heartbeat(generation)

        def on_reply(reply: Reply) -> None:
            if reply.error is None:
                self._metrics.heartbeat_answered(reply.now_ms - now_ms)
            if generation == self.generation:
                self._on_heartbeat(reply)

        self.heartbeat.sent(now_ms)
        self._metrics.heartbeat_sent(now_ms)
        self._send(ApiKeys.HEARTBEAT, lambda _version: request, on_reply, now_ms)

    def _on_heartbeat(self, reply: Reply) -> None:
        if reply.error is not None:
            self.heartbeat.failed(reply.now_ms)
            self._request_failed(reply.error, reply.now_ms, rejoin=False)
            return
        response: HeartbeatResponse = reply.message
        code = response.error_code
        if code in (Errors.NONE, Errors.REBALANCE_IN_PROGRESS):
            self.heartbeat.answered(reply.now_ms)
            self._warning.clear("heartbeat")
            if code and self.state is MemberState.STABLE:
                self.request_rejoin("the group is rebalancing")
            return
        self.heartbeat.failed(reply.now_ms)
        self._handle_common(code, "heartbeat", reply.now_ms)

    # Joining.

    def _poll_rejoin(self, now_ms: int) -> int:
        if self._share.changing or self.state in (MemberState.JOINING, MemberState.SYNCING):
            return NEVER
        if self._lost and self._share.lose_all(self.generation):
            self.state = self.state.to(MemberState.REVOKING)
            return NEVER
        self._lost = False
        if self._share.prepare_to_join(self._subscription.subscription(), self.generation):
            self.state = self.state.to(MemberState.REVOKING)
            return NEVER
        if not self._may_join or self._subscription.awaits_match:
            return NEVER
        if now_ms < self._retry_ms:
            return self._retry_ms - now_ms
        if self._finder.coordinator is not None:
            self._join(now_ms)
        return NEVER

    def _join(self, now_ms: int) -> None:
        topics = self._subscription.subscription()
        reason = self._rejoin_reason or ""
        held = self._share.held()
        try:
            request = self._settings.join(self.generation, topics, held, self._assignors.values(), reason)
        except KafkaError as error:
            self.fail(error)
            return
        self.state = self.state.to(MemberState.JOINING)
        self._attempt += 1
        attempt = self._attempt
        self._rejoin_reason = None
        self._joined_topics = topics

        def on_reply(reply: Reply) -> None:
            if attempt == self._attempt:
                self._on_join(reply, reply.now_ms - now_ms)

        self._metrics.rebalance_began(now_ms)
        self._log.info("Joining the group (%s)", reason)
        timeout_ms = self._settings.rebalance_timeout_ms + _JOIN_GRACE_MS
        self._send(ApiKeys.JOIN_GROUP, lambda _version: request, on_reply, now_ms, timeout_ms)

    def _on_join(self, reply: Reply, latency_ms: int) -> None:
        if reply.error is not None:
            self._request_failed(reply.error, reply.now_ms, rejoin=True)
            return
        response: JoinGroupResponse = reply.message
        code = response.error_code
        if code == Errors.MEMBER_ID_REQUIRED:
            self.generation = Generation(-1, response.member_id)
            self._retry_at_once("need to join with the given member id")
        elif code in (Errors.COORDINATOR_LOAD_IN_PROGRESS, Errors.REBALANCE_IN_PROGRESS):
            self._try_again(Errors.for_code(code), reply.now_ms)
        elif code:
            self._handle_common(code, "join", reply.now_ms)
        elif response.protocol_name not in self._assignors:
            self.fail(
                InconsistentGroupProtocolError(
                    f"Group {self._settings.group_id!r} chose the assignor {response.protocol_name!r}, "
                    "which this consumer does not have"
                )
            )
        else:
            self._metrics.joined(latency_ms)
            self._joined(response, reply.now_ms)

    def _joined(self, response: JoinGroupResponse, now_ms: int) -> None:
        self.state = self.state.to(MemberState.SYNCING)
        self.generation = Generation(response.generation_id, response.member_id, response.protocol_name)
        self.heartbeat.joined(now_ms)
        self._log.info("Joined generation %d as %s", response.generation_id, response.member_id)
        if response.leader != response.member_id:
            self._subscription.reset_group_subscription()
            self._sync({}, now_ms)
        elif response.skip_assignment:
            self._leader.keep(response.members)
            self._sync({}, now_ms)
        else:
            deadline_ms = now_ms + self._settings.rebalance_timeout_ms
            self._leader.begin(response.protocol_name or "", response.members, deadline_ms)
            self._poll_leader(now_ms)

    def _poll_leader(self, now_ms: int) -> int:
        wait_ms = self._leader.wait_ms(now_ms)
        if wait_ms:
            return wait_ms
        try:
            shares = self._leader.assign()
        except KafkaError as error:
            self.fail(error)
        else:
            self._sync(shares, now_ms)
        return NEVER

    def _sync(self, shares: Mapping[str, bytes], now_ms: int) -> None:
        attempt = self._attempt
        request = self._settings.sync(self.generation, shares)

        def on_reply(reply: Reply) -> None:
            if attempt == self._attempt:
                self._on_sync(reply, reply.now_ms - now_ms)

        timeout_ms = self._settings.rebalance_timeout_ms + _JOIN_GRACE_MS
        if self._finder.coordinator is None:
            self._try_again(None, now_ms)
            return
        self._send(ApiKeys.SYNC_GROUP, lambda _version: request, on_reply, now_ms, timeout_ms)

    def _on_sync(self, reply: Reply, latency_ms: int) -> None:
        if reply.error is not None:
            self._request_failed(reply.error, reply.now_ms, rejoin=True)
            return
        response: SyncGroupResponse = reply.message
        code = response.error_code
        if code == Errors.REBALANCE_IN_PROGRESS:
            self._retry_at_once("another rebalance began before this one was over")
            return
        if code:
            self._handle_common(code, "sync", reply.now_ms)
            return
        try:
            assignment = group_protocol.decode_assignment(response.assignment)
        except SchemaError as error:
            self.fail(error)
            return
        self._failures = 0
        self._metrics.rebalanced(latency_ms, reply.now_ms)
        if not self._subscription.covers(assignment.partitions):
            self._retry_at_once("the subscription changed during the rebalance")
            return
        self.state = self.state.to(MemberState.ASSIGNING)
        self._share.take(
            assignment, self.metadata_of(self.generation), self.generation, self._taken, self.fail
        )

    def _taken(self, gave_up: bool) -> None:
        self.state = self.state.to(MemberState.STABLE)
        if gave_up:
            self.request_rejoin("what this member gave up is for others to take")

    # Errors.

    def _handle_common(self, code: int, what: str, now_ms: int) -> None:
        """The answers that mean the same for join, sync and heartbeat."""
        error = Errors.for_code(code)
        assert error is not None
        if code in (Errors.COORDINATOR_NOT_AVAILABLE, Errors.NOT_COORDINATOR):
            self._finder.mark_unknown(Errors.name_of(code))
            if what != "heartbeat":
                self._try_again(error, now_ms)
        elif code == Errors.COORDINATOR_LOAD_IN_PROGRESS:
            if what != "heartbeat":
                self._try_again(error, now_ms)
        elif code in (Errors.UNKNOWN_MEMBER_ID, Errors.ILLEGAL_GENERATION):
            member_id = self.generation.member_id if code == Errors.ILLEGAL_GENERATION else ""
            self.lose(f"{what} was refused with {Errors.name_of(code)}")
            self.generation = Generation(-1, member_id)
        elif code == Errors.FENCED_INSTANCE_ID:
            self.fenced(
                FencedInstanceIdError(
                    f"Another consumer has joined with group.instance.id {self._settings.group_instance_id!r}"
                )
            )
        elif code == Errors.GROUP_AUTHORIZATION_FAILED:
            self._lost = True
            self.fail(GroupAuthorizationError(f"Not authorized to use group {self._settings.group_id!r}"))
        elif what == "heartbeat":
            # Nothing is wrong with the member as far as it knows; if there is, the session ends or a commit says so.
            self._warning.warn("heartbeat", f"A heartbeat was refused, trying again: {error}", now_ms)
        else:
            self.fail(error)

    def _request_failed(self, error: KafkaError, now_ms: int, *, rejoin: bool) -> None:
        """There is no answer: the coordinator may be another one now."""
        if not error.retriable:
            self.fail(error)
            return
        self._finder.mark_unknown(str(error))
        if rejoin:
            self._try_again(error, now_ms)

    def _try_again(self, error: KafkaError | None, now_ms: int) -> None:
        self._retry_ms = now_ms + self._backoff.backoff_ms(self._failures)
        self._failures += 1
        self._retry_at_once("the coordinator changed" if error is None else str(error))

    def _retry_at_once(self, reason: str) -> None:
        self._abandon()
        self._rejoin_reason = reason
