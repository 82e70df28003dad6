"""Being a member of a group whose coordinator assigns: heartbeats, reconciliation, leaving (KIP-848, KIP-1082)."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

import attrs

from kclient.client.coordinators import CoordinatorFinder
from kclient.client.request_sender import NEVER, Reply, RequestSender
from kclient.common.cluster import Cluster
from kclient.common.offsets import ConsumerGroupMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.consumer.group_membership_operation import GroupMembershipOperation
from kclient.consumer.internals.assigned_partitions import AssignedPartitions
from kclient.consumer.internals.coordinator import consumer_heartbeat, target_assignment
from kclient.consumer.internals.coordinator.assignment_changes import AssignmentChanges
from kclient.consumer.internals.coordinator.consumer_heartbeat import (
    ConsumerHeartbeats,
    ConsumerMemberSettings,
)
from kclient.consumer.internals.coordinator.consumer_member_state import (
    WITH_HEARTBEAT,
    WITH_PLACE,
    ConsumerMemberState,
)
from kclient.consumer.internals.coordinator.generation import Generation
from kclient.consumer.internals.coordinator.heartbeat import Heartbeat
from kclient.consumer.internals.coordinator.heartbeat_refusals import refusal
from kclient.consumer.internals.coordinator.membership import Membership
from kclient.consumer.internals.coordinator.target_assignment import LocalAssignment, TargetAssignment
from kclient.consumer.internals.coordinator.topic_names import TopicNames
from kclient.consumer.internals.group_metrics import GroupMetrics
from kclient.consumer.internals.metadata import ConsumerMetadata
from kclient.consumer.internals.rebalance_callback import RebalanceCallback, RebalanceKind
from kclient.consumer.internals.subscription_state import SubscriptionState
from kclient.errors import Errors, KafkaError
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kclient.utils.backoff import ExponentialBackoff
from kclient.utils.futures import CompletableFuture
from kclient.utils.log_context import LogContext, Logger, RepeatedWarning
from kclient.utils.time import Time

_FIRST_VERSION_WITH_REGEX: Final = 1
_OTHER_COORDINATOR: Final = (Errors.COORDINATOR_NOT_AVAILABLE, Errors.NOT_COORDINATOR)
_FENCED: Final = (Errors.FENCED_MEMBER_EPOCH, Errors.UNKNOWN_MEMBER_ID)
_WARNING: Final = "heartbeat"


@attrs.define(kw_only=True, eq=False, repr=False)
class ConsumerMembership(Membership):
    """The state machine of a member that takes what its coordinator assigns; `state` may be read by any thread.

    A heartbeat says what has changed, and its answer brings the epoch and, if that has changed, the assignment that is
    wanted. The member gives up first what is not in it, takes what is new, and acknowledges that with a heartbeat.
    """

    PROTOCOL: ClassVar[str] = "consumer"

    _settings: ConsumerMemberSettings
    _subscription: SubscriptionState
    _assigned: AssignedPartitions
    _metadata: ConsumerMetadata
    _finder: CoordinatorFinder
    _sender: RequestSender
    heartbeat: Heartbeat
    _backoff: ExponentialBackoff
    _changes: AssignmentChanges
    _on_fatal: Callable[[KafkaError], None]
    _metrics: GroupMetrics
    _time: Time
    _log_context: LogContext
    _log: Logger = attrs.field(init=False)
    _warning: RepeatedWarning = attrs.field(init=False)
    _member_id: str = attrs.field(factory=lambda: str(Uuid.random()), init=False)
    _requests: ConsumerHeartbeats = attrs.field(init=False)
    _target: TargetAssignment = attrs.field(init=False)
    _names: TopicNames = attrs.field(init=False)
    state: ConsumerMemberState = attrs.field(default=ConsumerMemberState.UNSUBSCRIBED, init=False)
    generation: Generation = attrs.field(init=False)
    _attempt: int = attrs.field(default=0, init=False)  # replies to requests of earlier attempts are ignored
    _retry_ms: int = attrs.field(default=0, init=False)
    _may_join: bool = attrs.field(default=False, init=False)
    _complained: bool = attrs.field(default=False, init=False)
    _joined_epoch: int = attrs.field(default=-1, init=False)
    _given_up_epoch: int = attrs.field(default=-1, init=False)
    _metadata_version: int = attrs.field(default=-1, init=False)
    _watched: frozenset[str] = attrs.field(default=frozenset(), init=False)

    def __attrs_post_init__(self) -> None:
        self._log = self._log_context.logger(__name__)
        self._warning = RepeatedWarning(self._log)
        self.generation = Generation(-1, self._member_id)
        self._requests = ConsumerHeartbeats(self._settings, self._member_id)
        self._target = TargetAssignment(self._metadata.topic_name)
        self._names = TopicNames(self._sender, self._backoff, self._watch)

    # What others ask.

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def expects_heartbeats(self) -> bool:
        return self.state in WITH_PLACE

    @property
    def rebalancing(self) -> bool:
        return self.state is ConsumerMemberState.JOINING

    def generation_for_commit(self) -> Generation | None:
        generation = self.generation
        return generation if self.state in WITH_PLACE and generation.is_valid else None

    def generation_for_lookup(self) -> Generation | None:
        return self.generation_for_commit()

    def metadata_of(self, generation: Generation) -> ConsumerGroupMetadata:
        """The epoch moves on while partitions stay: it is the one of now, unless the member has been out since."""
        now = self.generation_for_commit()
        if now is not None and self._joined_epoch <= generation.id <= now.id:
            generation = now
        return ConsumerGroupMetadata(
            self._settings.group_id, generation.id, generation.member_id, self._settings.group_instance_id
        )

    def polled(self, now_ms: int) -> bool:
        waited = not self._may_join
        self.heartbeat.polled_ms = now_ms
        self._may_join = True
        self._complained = False
        return waited

    # What happens to the member.

    def poll(self, now_ms: int) -> int:
        """Join, reconcile and heartbeat as needed."""
        if not self._subscription.has_auto_assigned_partitions():
            return NEVER
        if self.state not in WITH_HEARTBEAT:
            wait_ms = self._poll_outside(now_ms)
            if self.state not in WITH_HEARTBEAT:
                return wait_ms
        wait_ms = self._reconcile(now_ms) if self.state is ConsumerMemberState.RECONCILING else NEVER
        return min(wait_ms, self._poll_heartbeat(now_ms))

    def subscription_changed(self) -> None:
        self._tell_subscription()

    def metadata_updated(self, cluster: Cluster) -> None:  # noqa: ARG002 - it is for listeners
        """The pattern was matched anew. Names of topics that were missing are looked for in the next turn."""
        self._tell_subscription()

    def _tell_subscription(self) -> None:
        if self.state in WITH_HEARTBEAT and self._requests.is_news(*self._subscribed()):
            self.heartbeat.hurry()

    def _subscribed(self) -> tuple[frozenset[str], str | None]:
        """Return the topics and the regular expression that the coordinator is told."""
        pattern = self._subscription.broker_pattern
        if pattern is not None:
            return frozenset(), pattern.pattern
        return self._subscription.subscription(), None

    def request_rejoin(self, reason: str) -> None:
        self._log.warning(
            "The group does not rebalance (%s): with group.protocol=consumer that is the coordinator's decision",
            reason,
        )

    def callback_done(self, callback: RebalanceCallback) -> None:
        self._changes.done(callback)

    def commit_refused(self, code: int, sent: Generation, *, last: bool = False) -> Generation | None:
        """A newer epoch is good for a commit if nothing was given up since: what it says is the member's still."""
        now = self.generation_for_commit()
        if last and now is not None and code == Errors.STALE_MEMBER_EPOCH:
            if sent == now:
                self.heartbeat.hurry()  # the coordinator has another one, and says so in its answer
            return now
        if last and code == Errors.UNKNOWN_MEMBER_ID and sent == self.generation:
            self.lose(f"a commit was refused with {Errors.name_of(code)}")  # there is no time to ask
            return None
        oldest = max(self._joined_epoch, self._given_up_epoch + 1)
        if code == Errors.STALE_MEMBER_EPOCH and now is not None and oldest <= sent.id < now.id:
            return now
        if sent == self.generation:
            self.heartbeat.hurry()  # its answer says what has become of the member
        return None

    def leave(
        self,
        reason: str,
        future: CompletableFuture[None],
        now_ms: int,
        operation: GroupMembershipOperation = GroupMembershipOperation.DEFAULT,
    ) -> None:
        known = self.state in WITH_HEARTBEAT
        self._go_out(ConsumerMemberState.UNSUBSCRIBED)
        self._may_join = False
        epoch = self._leave_epoch(operation)
        if known and epoch is not None:
            self._say_goodbye(epoch, reason, future, now_ms)
        else:
            future.complete(None)

    def _leave_epoch(self, operation: GroupMembershipOperation) -> int | None:
        """Return the epoch that says what becomes of the member's place, None if nothing is said (KIP-1092)."""
        static = self._settings.group_instance_id is not None
        if operation is GroupMembershipOperation.LEAVE_GROUP:
            return consumer_heartbeat.LEAVE_EPOCH
        if static:
            return consumer_heartbeat.LEAVE_FOR_A_WHILE_EPOCH
        return consumer_heartbeat.LEAVE_EPOCH if operation is GroupMembershipOperation.DEFAULT else None

    def _say_goodbye(self, epoch: int, reason: str, future: CompletableFuture[None], now_ms: int) -> None:
        if not self._finder.known:
            future.complete(None)  # as if it were lost on its way: the session timeout does the same
            return
        self._log.info("Leaving the group: %s", reason)

        def on_reply(_: Reply) -> None:
            future.complete(None)  # not repeated if it failed: the session timeout does the same

        self._send(self._requests.leave(epoch), on_reply, now_ms)

    def fail(self, error: KafkaError) -> None:
        """Out of the group, and its partitions with it; the next poll joins again."""
        self._may_join = False
        self._go_out(ConsumerMemberState.FATAL)
        self._on_fatal(error)

    def fenced(self, error: KafkaError) -> None:
        self.fail(error)

    def lose(self, cause: str) -> None:
        """The group does not know the member any more: its partitions are gone, and it joins anew."""
        self._log.warning("The group has removed this member: %s", cause)
        self._go_out(ConsumerMemberState.FENCED)

    def _go_out(self, state: ConsumerMemberState) -> None:
        """Forget the place in the group, and what is under way."""
        self._attempt += 1
        self.generation = Generation(-1, self._member_id)
        self._target.forget()
        self._changes.cancel()
        self._go(state)

    def _go(self, state: ConsumerMemberState) -> None:
        before, self.state = self.state, self.state.to(state)
        if before is not ConsumerMemberState.RECONCILING:
            if state is ConsumerMemberState.RECONCILING:
                self._metrics.rebalance_began(self._time.monotonic_ms())
        elif state is ConsumerMemberState.ACKNOWLEDGING:
            self._metrics.reconciled(self._time.monotonic_ms())
        elif state is not ConsumerMemberState.RECONCILING:
            self._metrics.rebalance_failed()

    def _send(
        self,
        request: ConsumerGroupHeartbeatRequest,
        on_reply: Callable[[Reply], None],
        now_ms: int,
        min_version: int | None = None,
    ) -> None:
        coordinator = self._finder.coordinator
        assert coordinator is not None
        self._sender.send(
            coordinator,
            ApiKeys.CONSUMER_GROUP_HEARTBEAT,
            lambda _version: request,
            on_reply,
            now_ms,
            min_version=min_version,
        )

    # Joining.

    def _poll_outside(self, now_ms: int) -> int:
        """Give up what was lost, then join when the application polls."""
        if self._changes.under_way:
            return NEVER
        held = self._assigned.partitions()
        if held:
            self._changes.begin([self._callback(RebalanceKind.LOST, held)])
            return NEVER
        if not self._may_join or self._subscription.awaits_match:
            return NEVER
        if now_ms < self._retry_ms:
            return self._retry_ms - now_ms
        self._log.info("Joining the group as %s", self._member_id)
        self._go(ConsumerMemberState.JOINING)
        self._requests.forget()
        self.heartbeat.reset(now_ms)
        self.heartbeat.hurry()
        return 0

    def _callback(self, kind: RebalanceKind, partitions: frozenset[TopicPartition]) -> RebalanceCallback:
        return RebalanceCallback(kind, partitions, self.generation)

    # Heartbeats.

    def _poll_heartbeat(self, now_ms: int) -> int:
        heartbeat = self.heartbeat
        if heartbeat.poll_expired(now_ms):
            self._leave_stuck(now_ms)
            return 0
        if heartbeat.is_due(now_ms):
            if self._finder.coordinator is None:
                return NEVER  # it is looked for, which gives another turn
            self._send_heartbeat(now_ms)
        return heartbeat.wait_ms(now_ms)

    def _leave_stuck(self, now_ms: int) -> None:
        cause = "poll() was not called for max.poll.interval.ms; raise it, lower max.poll.records, or process faster"
        self._log.warning("Left the group: %s", cause)
        self._may_join = False
        self._go_out(ConsumerMemberState.STALE)
        epoch = self._leave_epoch(GroupMembershipOperation.DEFAULT)
        if epoch is not None:
            self._say_goodbye(epoch, cause, CompletableFuture(), now_ms)

    def _send_heartbeat(self, now_ms: int) -> None:
        attempt = self._attempt
        joining = self.state is ConsumerMemberState.JOINING
        topics, regex = self._subscribed()
        epoch = consumer_heartbeat.JOIN_EPOCH if joining else self.generation.id
        request = self._requests.build(epoch, topics, regex, self._target.current, joining=joining)

        def on_reply(reply: Reply) -> None:
            if reply.error is None:
                self._metrics.heartbeat_answered(reply.now_ms - now_ms)
            if attempt == self._attempt:
                self._on_heartbeat(reply)

        self.heartbeat.sent(now_ms)
        self._metrics.heartbeat_sent(now_ms)
        self._send(request, on_reply, now_ms, None if regex is None else _FIRST_VERSION_WITH_REGEX)
        if self.state is ConsumerMemberState.ACKNOWLEDGING:
            complete = self._target.reconciled
            self._go(ConsumerMemberState.STABLE if complete else ConsumerMemberState.RECONCILING)

    def _on_heartbeat(self, reply: Reply) -> None:
        response: ConsumerGroupHeartbeatResponse = reply.message
        if reply.error is None and response.error_code == Errors.NONE:
            self._warning.clear(_WARNING)
            self._accepted(response, reply.now_ms)
            return
        # What it said may not have been heard, so that all of it is said again.
        self._requests.forget()
        self.heartbeat.failed(reply.now_ms)
        if reply.error is None:
            self._refused(response, reply.now_ms)
        elif reply.error.retriable:
            self._finder.mark_unknown(str(reply.error))
        else:
            self.fail(refusal(reply.error, self._settings, self._subscription.broker_pattern))

    def _accepted(self, response: ConsumerGroupHeartbeatResponse, now_ms: int) -> None:
        if response.member_epoch <= 0:
            self._warning.warn(
                _WARNING,
                f"The coordinator answered with epoch {response.member_epoch}, which none can be",
                now_ms,
            )
            self.heartbeat.failed(now_ms)
            return
        if not self.generation.is_valid:
            self._log.info("Joined the group with epoch %d", response.member_epoch)
            self._joined_epoch = response.member_epoch
        self.heartbeat.answered(now_ms)
        self.heartbeat.set_interval(response.heartbeat_interval_ms, now_ms)
        if response.member_epoch != self.generation.id:
            self.generation = Generation(response.member_epoch, self._member_id)
        if response.assignment is not None:
            self._want(
                target_assignment.by_id(
                    (topic.topic_id, topic.partitions) for topic in response.assignment.topic_partitions
                )
            )

    def _refused(self, response: ConsumerGroupHeartbeatResponse, now_ms: int) -> None:
        code = response.error_code
        error = Errors.for_code(code, response.error_message)
        assert error is not None
        if code in _OTHER_COORDINATOR:
            self._finder.mark_unknown(Errors.name_of(code))
        elif code == Errors.COORDINATOR_LOAD_IN_PROGRESS:
            self._warning.warn(_WARNING, f"A heartbeat was refused, trying again: {error}", now_ms)
        elif code in _FENCED:
            if self.state is ConsumerMemberState.JOINING:
                self._retry_ms = now_ms + self._backoff.backoff_ms(0)
            self.lose(f"a heartbeat was refused with {Errors.name_of(code)}")
        elif code == Errors.TOPIC_AUTHORIZATION_FAILED:
            # The member stays what it is and asks again, for the rights may come.
            if not self._complained:
                self._complained = True
                self._on_fatal(error)
        else:
            self.fail(refusal(error, self._settings, self._subscription.broker_pattern))

    # Reconciliation.

    def _want(self, partitions: target_assignment.PartitionsById) -> None:
        self._target.want(partitions)
        if not self._target.reconciled:
            self._metadata_version = -1
            self._go(ConsumerMemberState.RECONCILING)

    def _reconcile(self, now_ms: int) -> int:
        """Begin to take what is wanted, as far as its topics are known; what was begun before is finished first."""
        if self._changes.under_way:
            return NEVER
        assignment, partitions, unknown = self._target.resolve()
        wait_ms = self._look_up(unknown, now_ms) if unknown else NEVER
        current = self._target.current
        if not current.is_none and assignment.partitions == current.partitions:
            if assignment.version != current.version:
                self._taken(assignment, partitions)
            return wait_ms
        held = self._assigned.partitions()
        given_up = held - partitions
        self._log.info("Assigned: %s", ", ".join(map(str, sorted(partitions))) or "nothing")
        if not unknown:
            self._watched = frozenset()
        self._subscription.subscribe_from_broker({tp.topic for tp in partitions | held}, self._watched)
        if given_up:
            self._log.info("Given up: %s", ", ".join(map(str, sorted(given_up))))
            callback = self._callback(RebalanceKind.REVOKED, given_up)
            self._changes.begin([callback], lambda: self._take(assignment, partitions, gave_up=True))
        else:
            self._take(assignment, partitions)
        return wait_ms

    def _look_up(self, unknown: frozenset[Uuid], now_ms: int) -> int:
        """Have the metadata know topics that the coordinator knows already."""
        if self._subscription.broker_pattern is not None:
            return self._names.poll(unknown, now_ms)
        version = self._metadata.update_version
        if version != self._metadata_version:
            self._metadata.request_update(reset_backoff=self._metadata_version < 0)
            self._metadata_version = version
        return NEVER

    def _watch(self, names: frozenset[str]) -> None:
        """Topics that the broker's pattern matches have these names: ask for their metadata."""
        self._watched = names
        self._subscription.subscribe_from_broker(self._subscription.subscription(), names)
        if names <= self._metadata.fetch().topics:
            self._metadata.request_update()  # another topic of the same name is known
        else:
            self._metadata.request_update_for_new_topics()

    def _take(
        self, assignment: LocalAssignment, partitions: frozenset[TopicPartition], *, gave_up: bool = False
    ) -> None:
        if gave_up:
            self._given_up_epoch = self.generation.id
        callback = self._callback(RebalanceKind.ASSIGNED, partitions)
        self._changes.begin([callback], lambda: self._taken(assignment, partitions))

    def _taken(self, assignment: LocalAssignment, partitions: frozenset[TopicPartition]) -> None:
        self._subscription.subscribe_from_broker({tp.topic for tp in partitions}, self._watched)
        self._target.take(assignment)
        self._go(ConsumerMemberState.ACKNOWLEDGING)
        self.heartbeat.hurry()
