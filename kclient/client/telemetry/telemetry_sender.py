"""TelemetrySender: asks brokers which metrics they want, and pushes those, one request at a time (KIP-714)."""

from __future__ import annotations

import enum
import random
from collections.abc import Callable
from typing import Any, Protocol

from kclient.client.connection_states import WAIT_FOR_EVENT_MS
from kclient.client.requests import ClientResponse
from kclient.client.telemetry.client_telemetry import ClientTelemetry
from kclient.client.telemetry.payload import PayloadEncoder
from kclient.client.telemetry.subscription import TelemetrySubscription
from kclient.common.node import Node
from kclient.common.uuid import Uuid
from kclient.errors import Errors, IllegalStateError
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from kclient.protocol.messages.push_telemetry import PushTelemetryRequest
from kclient.utils.log_context import LogContext
from kclient.utils.time import NS_PER_MS, Time

DEFAULT_PUSH_INTERVAL_MS = 300_000
"""Time until the next attempt where no broker has named another one."""
_LOOK_AGAIN_MS = 100  # for a broker that takes requests now
_RETRY_MS = 10_000  # after a connection that broke before there was a subscription
_EARLIEST, _LATEST = 0.5, 1.5  # of the interval: the first pushes of many clients come apart
_HOPELESS = frozenset({Errors.INVALID_REQUEST, Errors.INVALID_RECORD, Errors.UNSUPPORTED_VERSION})
_OUTDATED = frozenset({Errors.UNKNOWN_SUBSCRIPTION_ID, Errors.UNSUPPORTED_COMPRESSION_TYPE})


class TelemetryState(enum.Enum):
    """The next thing that a client does for telemetry, or waits for."""

    SUBSCRIPTION_NEEDED = enum.auto()
    SUBSCRIPTION_IN_PROGRESS = enum.auto()
    PUSH_NEEDED = enum.auto()
    PUSH_IN_PROGRESS = enum.auto()
    TERMINATING_PUSH_IN_PROGRESS = enum.auto()
    TERMINATED = enum.auto()


VALID_TRANSITIONS: dict[TelemetryState, frozenset[TelemetryState]] = {
    TelemetryState.SUBSCRIPTION_NEEDED: frozenset(
        {TelemetryState.SUBSCRIPTION_IN_PROGRESS, TelemetryState.TERMINATED}
    ),
    TelemetryState.SUBSCRIPTION_IN_PROGRESS: frozenset(
        {TelemetryState.SUBSCRIPTION_NEEDED, TelemetryState.PUSH_NEEDED, TelemetryState.TERMINATED}
    ),
    TelemetryState.PUSH_NEEDED: frozenset(
        {
            TelemetryState.SUBSCRIPTION_NEEDED,
            TelemetryState.PUSH_IN_PROGRESS,
            TelemetryState.TERMINATING_PUSH_IN_PROGRESS,
            TelemetryState.TERMINATED,
        }
    ),
    TelemetryState.PUSH_IN_PROGRESS: frozenset(
        {
            TelemetryState.PUSH_NEEDED,
            TelemetryState.SUBSCRIPTION_NEEDED,
            TelemetryState.TERMINATING_PUSH_IN_PROGRESS,
            TelemetryState.TERMINATED,
        }
    ),
    TelemetryState.TERMINATING_PUSH_IN_PROGRESS: frozenset({TelemetryState.TERMINATED}),
    TelemetryState.TERMINATED: frozenset(),
}


class TelemetryChannel(Protocol):
    """The part of a NetworkClient that the sender works with."""

    def offers(self, api_key: ApiKeys) -> bool | None:
        """True if a broker with a connection has the API, None if there is no such broker."""

    def least_loaded_node(self, now_ms: int) -> Node | None:
        """The broker to ask."""

    def is_ready(self, node: Node, now_ms: int) -> bool:
        """True if it can be asked now."""

    def connect_if_allowed(self, node: Node, now_ms: int) -> bool:
        """Begin to connect if there is no connection and no backoff; returns whether it did."""

    def send_internal(
        self, node: Node, message: Any, on_complete: Callable[[ClientResponse], None], now_ms: int
    ) -> None:
        """Send a request of the client's own, which is told to nobody else."""


class TelemetrySender:
    """Sends at most one request at a time. Belongs to the thread of its NetworkClient.

    Brokers on which nobody receives metrics do not offer the APIs, and are asked nothing.
    """

    def __init__(self, telemetry: ClientTelemetry, time: Time, log_context: LogContext) -> None:
        self._telemetry = telemetry
        self._time = time
        self._log = log_context.logger(__name__)
        self.state = TelemetryState.SUBSCRIPTION_NEEDED
        self.next_ms = 0
        """Before this `maybe_send` has nothing to do."""
        self._subscription: TelemetrySubscription | None = None
        self._instance_id = Uuid.ZERO
        self._encoder = PayloadEncoder(time.wall_ms() * NS_PER_MS)

    def maybe_send(self, client: TelemetryChannel, now_ms: int) -> None:
        """Send what is due, if a broker takes it now."""
        offered = client.offers(ApiKeys.GET_TELEMETRY_SUBSCRIPTIONS)
        if offered is False:
            self._telemetry.refused("nobody receives metrics on the brokers (metric.reporters)")
            self.next_ms = now_ms + DEFAULT_PUSH_INTERVAL_MS
            return
        node = client.least_loaded_node(now_ms) if offered else None
        if node is None or not client.is_ready(node, now_ms):
            if node is not None:
                client.connect_if_allowed(node, now_ms)
            self.next_ms = now_ms + _LOOK_AGAIN_MS
            return
        self.next_ms = WAIT_FOR_EVENT_MS
        if self.state is TelemetryState.PUSH_NEEDED:
            self._transition_to(TelemetryState.PUSH_IN_PROGRESS)
            if not self._push(client, node, now_ms, terminating=False):
                self._wait_for_push(now_ms)
        else:
            self._transition_to(TelemetryState.SUBSCRIPTION_IN_PROGRESS)
            request = GetTelemetrySubscriptionsRequest(client_instance_id=self._instance_id)
            client.send_internal(node, request, self._subscription_answered, now_ms)

    def terminate(self, client: TelemetryChannel, now_ms: int) -> bool:
        """Send the last metrics, if any are wanted; returns whether an answer is to be waited for."""
        # Also behind a push that is not answered yet: the broker takes the last one whenever it comes.
        if self.state in {TelemetryState.PUSH_NEEDED, TelemetryState.PUSH_IN_PROGRESS}:
            node = client.least_loaded_node(now_ms)
            if node is not None and client.is_ready(node, now_ms):
                self._transition_to(TelemetryState.TERMINATING_PUSH_IN_PROGRESS)
                if self._push(client, node, now_ms, terminating=True):
                    return True
        self._transition_to(TelemetryState.TERMINATED)
        return False

    def _push(self, client: TelemetryChannel, node: Node, now_ms: int, *, terminating: bool) -> bool:
        subscription = self._subscription
        assert subscription is not None
        wanted = [each for each in self._telemetry.measurements() if subscription.wants(each.name)]
        now_ns = self._time.wall_ms() * NS_PER_MS
        payload = self._encoder.encode(wanted, self._telemetry.labels(), now_ns, delta=subscription.delta)
        codec, metrics = subscription.compressed(payload)
        if len(metrics) > subscription.max_bytes:
            self._log.warning(
                "%d bytes of metrics are not pushed: the broker takes %d (telemetry.max.bytes); subscribe to fewer",
                len(metrics),
                subscription.max_bytes,
            )
            return False
        request = PushTelemetryRequest(
            client_instance_id=self._instance_id,
            subscription_id=subscription.id,
            terminating=terminating,
            compression_type=int(codec),
            metrics=metrics,
        )
        answered = self._last_push_answered if terminating else self._push_answered
        client.send_internal(node, request, answered, now_ms)
        return True

    def _subscription_answered(self, response: ClientResponse) -> None:
        if self.state is not TelemetryState.SUBSCRIPTION_IN_PROGRESS:
            return  # closed meanwhile
        now_ms = response.received_ms
        if response.failed:
            self._ask_again(now_ms, _RETRY_MS, f"the connection to broker {response.request.node_id} ended")
            return
        error = Errors.for_code(response.message.error_code)
        if error is not None:
            self._log.debug("The broker gives no telemetry subscription: %s", error)
            hopeless = response.message.error_code in _HOPELESS
            self._ask_again(now_ms, WAIT_FOR_EVENT_MS if hopeless else DEFAULT_PUSH_INTERVAL_MS, str(error))
            return
        self._subscription = subscription = TelemetrySubscription.from_response(response.message)
        self._instance_id = subscription.client_instance_id
        self._telemetry.identified(self._instance_id)
        if not subscription.prefixes:
            self._ask_again(now_ms, subscription.push_interval_ms)
            return
        self._log.debug("Brokers want metrics every %d ms: %s", subscription.push_interval_ms, subscription)
        self._transition_to(TelemetryState.PUSH_NEEDED)
        self.next_ms = now_ms + int(subscription.push_interval_ms * random.uniform(_EARLIEST, _LATEST))

    def _last_push_answered(self, response: ClientResponse) -> None:
        del response  # there is nobody left who could do something about it
        if self.state is TelemetryState.TERMINATING_PUSH_IN_PROGRESS:
            self._transition_to(TelemetryState.TERMINATED)

    def _push_answered(self, response: ClientResponse) -> None:
        if self.state is not TelemetryState.PUSH_IN_PROGRESS:
            return
        subscription = self._subscription
        assert subscription is not None
        now_ms = response.received_ms
        if response.failed:
            self._wait_for_push(now_ms)
            return
        code = response.message.error_code
        error = Errors.for_code(code)
        if error is None:
            self._wait_for_push(now_ms)
            return
        self._log.debug("The broker does not take the metrics: %s", error)
        if code in _HOPELESS:
            self._ask_again(now_ms, WAIT_FOR_EVENT_MS, str(error))
        else:
            self._ask_again(now_ms, 0 if code in _OUTDATED else subscription.push_interval_ms, str(error))

    def _wait_for_push(self, now_ms: int) -> None:
        assert self._subscription is not None
        self._transition_to(TelemetryState.PUSH_NEEDED)
        self.next_ms = now_ms + self._subscription.push_interval_ms

    def _ask_again(self, now_ms: int, wait_ms: int, reason: str = "") -> None:
        self._transition_to(TelemetryState.SUBSCRIPTION_NEEDED)
        self._telemetry.refused(reason)
        self.next_ms = now_ms + wait_ms

    def _transition_to(self, state: TelemetryState) -> None:
        if state not in VALID_TRANSITIONS[self.state]:
            raise IllegalStateError(f"Telemetry cannot go from {self.state.name} to {state.name}")
        self.state = state
