"""Being a member of a share group: ShareGroupHeartbeat joins, stays and leaves (KIP-932)."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from kclient.client.coordinators import CoordinatorFinder
from kclient.client.metadata import Metadata
from kclient.client.request_sender import NEVER, Reply, RequestSender
from kclient.consumer.internals.coordinator.heartbeat import Heartbeat
from kclient.consumer.internals.share.assignment import ShareAssignment
from kclient.consumer.internals.share.member_state import IN_GROUP, ShareMemberState
from kclient.consumer.internals.share.metrics import ShareMetrics
from kclient.consumer.internals.subscription_state import SubscriptionState
from kclient.errors import (
    DisconnectError,
    Errors,
    GroupAuthorizationError,
    KafkaError,
    KafkaTimeoutError,
    TopicAuthorizationError,
    UnsupportedVersionError,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from kclient.utils.futures import CompletableFuture
from kclient.utils.log_context import LogContext, Logger, RepeatedWarning

_JOIN_EPOCH = 0
_LEAVE_EPOCH = -1
_NOT_COORDINATOR = frozenset({Errors.NOT_COORDINATOR, Errors.COORDINATOR_NOT_AVAILABLE})
_FENCED = frozenset({Errors.FENCED_MEMBER_EPOCH, Errors.UNKNOWN_MEMBER_ID})
_FEATURE = "share.version"


@attrs.define(kw_only=True, eq=False, repr=False)
class ShareMembership:
    """The member's state machine. Belongs to the I/O thread; `state` and `member_epoch` may be read by any.

    The member makes its id up, and brokers know its sessions by the same id. An assignment takes effect at once: the
    partitions are shared with other members anyway, and what is locked stays locked.
    """

    _group_id: str
    member_id: str
    _rack: str | None
    _subscription: SubscriptionState
    assignment: ShareAssignment
    _metadata: Metadata
    _finder: CoordinatorFinder
    _sender: RequestSender
    heartbeat: Heartbeat
    _on_error: Callable[[KafkaError], None]
    _on_assignment: Callable[[], None]
    _metrics: ShareMetrics
    _log_context: LogContext
    _log: Logger = attrs.field(init=False)
    _warning: RepeatedWarning = attrs.field(init=False)
    state: ShareMemberState = attrs.field(default=ShareMemberState.UNJOINED, init=False)
    member_epoch: int = attrs.field(default=_JOIN_EPOCH, init=False)
    _attempt: int = attrs.field(default=0, init=False)  # replies to requests of earlier attempts are ignored
    _told: frozenset[str] | None = attrs.field(default=None, init=False)
    """The topics that the coordinator knows of; None if it has to be told everything."""
    _may_join: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self._log = self._log_context.logger(__name__)
        self._warning = RepeatedWarning(self._log)

    # What happens to the member.

    def polled(self, now_ms: int) -> bool:
        """The application, whose thread this is, called poll(); returns whether the I/O thread waits for that."""
        waited = not self._may_join
        self.heartbeat.polled_ms = now_ms
        self._may_join = True
        return waited

    def poll(self, now_ms: int) -> int:
        """Join if that is wanted, and send heartbeats."""
        if not self._subscription.has_auto_assigned_partitions():
            return NEVER
        if self.state is ShareMemberState.FENCED or (self.state not in IN_GROUP and self._may_join):
            self._join(now_ms)
        if self.state not in IN_GROUP:
            return NEVER
        wait_ms = self.heartbeat.wait_ms(now_ms)
        if wait_ms > 0:
            return wait_ms
        if self.heartbeat.poll_expired(now_ms):
            self._leave_stuck(now_ms)
            return NEVER
        if not self.heartbeat.is_due(now_ms) or self._finder.coordinator is None:
            return NEVER  # the coordinator is looked for, which gives another turn
        self._send_heartbeat(now_ms)
        return self.heartbeat.wait_ms(now_ms)

    def subscription_changed(self, now_ms: int) -> None:
        """The subscription may be another one than the group knows."""
        if self.state is ShareMemberState.STABLE and self._told != self._subscription.subscription():
            self.heartbeat.begin_anew(now_ms)

    def _join(self, now_ms: int) -> None:
        if self.state is ShareMemberState.LEAVING:
            return
        self.state = self.state.to(ShareMemberState.JOINING)
        self.member_epoch = _JOIN_EPOCH
        self._told = None
        self._attempt += 1
        self.heartbeat.begin_anew(now_ms)

    def leave(self, future: CompletableFuture[None], now_ms: int) -> None:
        """Leave the group; `future` is done when the coordinator has heard of it, or cannot."""
        in_group, coordinator_known = self.state in IN_GROUP, self._finder.known
        self._may_join = False
        self.assignment.clear()
        self._attempt += 1
        if not in_group or not coordinator_known:
            if self.state is not ShareMemberState.LEAVING:
                if in_group:
                    self.state = self.state.to(ShareMemberState.LEAVING)
                self.state = self.state.to(ShareMemberState.UNJOINED)
            future.complete(None)
            return
        self.state = self.state.to(ShareMemberState.LEAVING)
        attempt = self._attempt

        def on_reply(_: Reply) -> None:
            # Not repeated if it failed: the session timeout does the same.
            if attempt == self._attempt and self.state is ShareMemberState.LEAVING:
                self.state = self.state.to(ShareMemberState.UNJOINED)
            future.complete(None)

        self._send_leave(on_reply, now_ms)

    def _leave_stuck(self, now_ms: int) -> None:
        self._log.warning(
            "Left the share group: poll() was not called for max.poll.interval.ms; raise it, lower max.poll.records, "
            "or process faster"
        )
        self._may_join = False
        self._attempt += 1
        self.state = self.state.to(ShareMemberState.STALE)
        self.assignment.clear()
        if self._finder.known:
            self._send_leave(lambda _: None, now_ms)

    # Heartbeats.

    def _send_leave(self, on_reply: Callable[[Reply], None], now_ms: int) -> None:
        request = ShareGroupHeartbeatRequest(
            group_id=self._group_id, member_id=self.member_id, member_epoch=_LEAVE_EPOCH
        )
        coordinator = self._finder.coordinator
        self._sender.send(coordinator, ApiKeys.SHARE_GROUP_HEARTBEAT, lambda _: request, on_reply, now_ms)

    def _send_heartbeat(self, now_ms: int) -> None:
        topics = self._subscription.subscription()
        request = ShareGroupHeartbeatRequest(
            group_id=self._group_id, member_id=self.member_id, member_epoch=self.member_epoch
        )
        if self._told is None:
            request.rack_id = self._rack
        if self._told != topics:
            request.subscribed_topic_names = sorted(topics)
        attempt = self._attempt

        def on_reply(reply: Reply) -> None:
            if reply.error is None:
                self._metrics.heartbeat_answered(reply.now_ms - now_ms)
            if attempt == self._attempt:
                self._on_heartbeat(reply, topics)

        self.heartbeat.sent(now_ms)
        self._metrics.heartbeat_sent(now_ms)
        coordinator = self._finder.coordinator
        self._sender.send(coordinator, ApiKeys.SHARE_GROUP_HEARTBEAT, lambda _: request, on_reply, now_ms)

    def _on_heartbeat(self, reply: Reply, topics: frozenset[str]) -> None:
        now_ms = reply.now_ms
        if reply.error is not None:
            self._failed(reply.error, now_ms)
            return
        response: ShareGroupHeartbeatResponse = reply.message
        error = Errors.for_code(response.error_code, response.error_message)
        if error is None:
            self._answered(response, topics, now_ms)
        elif response.error_code in _FENCED:
            self._fenced(error)
        elif response.error_code in _NOT_COORDINATOR:
            self._finder.mark_unknown(str(error))
            self._told = None  # another one may know less
            self.heartbeat.failed(now_ms)
        elif isinstance(error, TopicAuthorizationError):
            # The others are not held up by that; the next heartbeat tells it again.
            self.heartbeat.sent(now_ms)
            self.heartbeat.answered(now_ms)
            self._on_error(error)
        elif error.retriable:
            self.heartbeat.failed(now_ms)
            self._warning.warn("heartbeat", f"The share group cannot be joined for now: {error}", now_ms)
        else:
            self._refused(error)

    def _answered(self, response: ShareGroupHeartbeatResponse, topics: frozenset[str], now_ms: int) -> None:
        self._warning.clear("heartbeat")
        self.heartbeat.set_interval(response.heartbeat_interval_ms, now_ms)
        self.heartbeat.sent(now_ms)
        self.heartbeat.answered(now_ms)
        self.member_epoch = response.member_epoch
        self._told = topics
        if self.state is ShareMemberState.JOINING:
            self._log.info("Joined the share group as member %s", self.member_id)
        self.state = self.state.to(ShareMemberState.STABLE)
        self.subscription_changed(now_ms)  # maybe while the heartbeat was on its way
        if response.assignment is not None:
            self.assignment.take(response.assignment.topic_partitions, self._metadata)
            self._metrics.assigned()
            if self.assignment.unresolved:
                self._metadata.request_update()
            self._on_assignment()

    def _failed(self, error: KafkaError, now_ms: int) -> None:
        if isinstance(error, UnsupportedVersionError):
            self._refused(error)
            return
        self.heartbeat.failed(now_ms)
        if isinstance(error, DisconnectError | KafkaTimeoutError):
            self._finder.mark_unknown(str(error))
            self._told = None
        if error.retriable:
            self._warning.warn("heartbeat", f"A heartbeat failed: {error}", now_ms)
        else:
            self._refused(error)

    def _fenced(self, error: KafkaError) -> None:
        self._log.warning("The share group does not know this member any more, joining anew: %s", error)
        self._attempt += 1
        self.state = self.state.to(ShareMemberState.FENCED)
        self.assignment.clear()

    def refused(self, error: KafkaError) -> None:
        """The coordinator cannot be found, for a reason that does not pass."""
        if self.state in IN_GROUP:
            self._refused(error)

    def _refused(self, error: KafkaError) -> None:
        """The application has to know; nothing more is tried until it polls again."""
        if isinstance(error, UnsupportedVersionError):
            level = self._sender.client.finalized_level(_FEATURE)
            error = UnsupportedVersionError(
                "The cluster has no share groups (KIP-932): they need Kafka 4.2 or newer with the feature "
                f"{_FEATURE} at level 1, which is at {level} here (kafka-features.sh upgrade --feature "
                f"{_FEATURE}=1). The broker said: {error}"
            )
        elif isinstance(error, GroupAuthorizationError):
            error = GroupAuthorizationError(f"Not authorized to use share group {self._group_id!r}")
        self._may_join = False
        self._attempt += 1
        self.state = self.state.to(ShareMemberState.FATAL)
        self.assignment.clear()
        self._on_error(error)
