from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from harness.mock_time import MockTime
from kclient.client.connection_states import WAIT_FOR_EVENT_MS
from kclient.client.requests import ClientRequest, ClientResponse
from kclient.client.telemetry.client_telemetry import ClientTelemetry
from kclient.client.telemetry.telemetry_sender import (
    DEFAULT_PUSH_INTERVAL_MS,
    TelemetrySender,
    TelemetryState,
)
from kclient.common.node import Node
from kclient.common.uuid import Uuid
from kclient.compress import CompressionType, decompress
from kclient.errors import Errors, KafkaTimeoutError
from kclient.metrics import Measurement, MetricName
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from kclient.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from kclient.utils import steps
from kclient.utils.log_context import LogContext

NODE = Node(1, "host", 9092)
CLIENT = Uuid.random()
RATE = MetricName("record-send-rate", "producer-metrics")
LAG = MetricName("records-lag-max", "consumer-fetch-manager-metrics")


class Channel:
    """A client with one broker, that notes what is sent to it."""

    def __init__(self) -> None:
        self.node: Node | None = NODE
        self.ready = True
        self.offered: bool | None = True
        self.connected: list[Node] = []
        self.sent: list[Any] = []
        self._on_complete: Callable[[ClientResponse], None]

    def offers(self, api_key: ApiKeys) -> bool | None:
        return self.offered

    def least_loaded_node(self, now_ms: int) -> Node | None:
        return self.node

    def is_ready(self, node: Node, now_ms: int) -> bool:
        return self.ready

    def connect_if_allowed(self, node: Node, now_ms: int) -> bool:
        self.connected.append(node)
        return True

    def send_internal(
        self, node: Node, message: Any, on_complete: Callable[[ClientResponse], None], now_ms: int
    ) -> None:
        self.sent.append(message)
        self._on_complete = on_complete

    def answer(self, now_ms: int, message: Any = None) -> None:
        """Answer what was sent last; without a message the connection ends."""
        request = ClientRequest(1, self.sent[-1].API_KEY, lambda _: None, 1, 30_000, True, None, None, None)
        self._on_complete(ClientResponse(request, 0, now_ms, message=message, disconnected=message is None))

    def take_answer(self) -> Callable[[int, Any], None]:
        """Return a function that answers what was sent last, whatever is sent in between."""
        on_complete = self._on_complete

        def answer(now_ms: int, message: Any) -> None:
            self._on_complete = on_complete
            self.answer(now_ms, message)

        return answer


class Parts:
    def __init__(self) -> None:
        self.channel = Channel()
        self.time = MockTime()
        self.labels = {"group_id": "g"}
        self.telemetry = ClientTelemetry(
            lambda: [Measurement(RATE, 2.5, cumulative=False), Measurement(LAG, 9.0, cumulative=False)],
            lambda: self.labels,
        )
        self.sender = TelemetrySender(self.telemetry, self.time, LogContext())

    def subscribe(self, now_ms: int = 0, **fields: Any) -> None:
        """Have the sender ask, and answer that metrics are wanted."""
        self.sender.maybe_send(self.channel, now_ms)
        assert isinstance(self.channel.sent[-1], GetTelemetrySubscriptionsRequest)
        fields = {
            "client_instance_id": CLIENT,
            "subscription_id": 77,
            "accepted_compression_types": [4],
            "push_interval_ms": 1000,
            "telemetry_max_bytes": 10_000,
            "requested_metrics": ["org.apache.kafka.producer"],
            **fields,
        }
        self.channel.answer(now_ms, GetTelemetrySubscriptionsResponse(**fields))

    def push(self, now_ms: int) -> PushTelemetryRequest:
        self.sender.maybe_send(self.channel, now_ms)
        sent = self.channel.sent[-1]
        assert isinstance(sent, PushTelemetryRequest)
        return sent


@pytest.fixture
def parts() -> Parts:
    return Parts()


def names(push: PushTelemetryRequest) -> list[str]:
    """The metrics in a push, by OpenTelemetry's own classes."""
    plain = decompress(CompressionType(push.compression_type), push.metrics, 100_000)
    data = MetricsData.FromString(plain)
    return [m.name for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics]


def test_a_client_asks_who_it_is_first_and_by_its_id_from_then_on(parts: Parts) -> None:
    parts.subscribe(requested_metrics=[])
    assert parts.channel.sent[0].client_instance_id == Uuid.ZERO
    assert steps.run(parts.telemetry.client_instance_id(parts.time.timer(0)), parts.time) == CLIENT
    assert parts.sender.next_ms == 1000
    parts.subscribe(1000)
    assert parts.channel.sent[1].client_instance_id == CLIENT


def test_the_metrics_that_are_wanted_are_pushed_once_an_interval(parts: Parts) -> None:
    parts.subscribe()
    assert 500 <= parts.sender.next_ms <= 1500

    push = parts.push(1500)

    assert (push.client_instance_id, push.subscription_id, push.terminating) == (CLIENT, 77, False)
    assert push.compression_type == CompressionType.ZSTD
    assert names(push) == ["org.apache.kafka.producer.record.send.rate"]
    assert parts.sender.next_ms == WAIT_FOR_EVENT_MS
    parts.channel.answer(1510, PushTelemetryResponse())
    assert parts.sender.next_ms == 2510
    parts.push(2510)
    assert len(parts.channel.sent) == 3


def test_first_pushes_of_many_clients_come_apart() -> None:
    due = set()
    for _ in range(30):
        parts = Parts()
        parts.subscribe(push_interval_ms=100_000)
        due.add(parts.sender.next_ms)

    assert len(due) > 10
    assert min(due) >= 50_000
    assert max(due) <= 150_000


@pytest.mark.parametrize("code", [Errors.UNKNOWN_SUBSCRIPTION_ID, Errors.UNSUPPORTED_COMPRESSION_TYPE])
def test_a_subscription_that_has_changed_is_asked_for_at_once(parts: Parts, code: int) -> None:
    parts.subscribe()
    parts.push(1500)
    parts.channel.answer(1510, PushTelemetryResponse(error_code=code))
    assert parts.sender.next_ms == 1510
    parts.subscribe(1510, subscription_id=78)
    assert parts.push(4000).subscription_id == 78


@pytest.mark.parametrize("code", [Errors.TELEMETRY_TOO_LARGE, Errors.THROTTLING_QUOTA_EXCEEDED])
def test_a_push_that_is_too_much_is_followed_by_a_pause(parts: Parts, code: int) -> None:
    parts.subscribe()
    parts.push(1500)
    parts.channel.answer(1510, PushTelemetryResponse(error_code=code))
    assert (parts.sender.state, parts.sender.next_ms) == (TelemetryState.SUBSCRIPTION_NEEDED, 2510)


@pytest.mark.parametrize("code", [Errors.INVALID_REQUEST, Errors.INVALID_RECORD, Errors.UNSUPPORTED_VERSION])
def test_a_broker_that_cannot_read_the_push_gets_no_other(parts: Parts, code: int) -> None:
    parts.subscribe()
    parts.push(1500)
    parts.channel.answer(1510, PushTelemetryResponse(error_code=code))
    assert parts.sender.next_ms >= WAIT_FOR_EVENT_MS


@pytest.mark.parametrize("code", [Errors.INVALID_REQUEST, Errors.UNKNOWN_SERVER_ERROR])
def test_a_refused_subscription_is_asked_for_again_unless_that_is_hopeless(parts: Parts, code: int) -> None:
    parts.sender.maybe_send(parts.channel, 0)
    parts.channel.answer(10, GetTelemetrySubscriptionsResponse(error_code=code))
    hopeless = code == Errors.INVALID_REQUEST
    assert (parts.sender.next_ms >= WAIT_FOR_EVENT_MS) is hopeless
    assert hopeless or parts.sender.next_ms == 10 + DEFAULT_PUSH_INTERVAL_MS
    with pytest.raises(KafkaTimeoutError, match=r"within 0 ms: .+"):
        steps.run(parts.telemetry.client_instance_id(parts.time.timer(0)), parts.time)


def test_connections_that_end_do_not_end_telemetry(parts: Parts) -> None:
    parts.sender.maybe_send(parts.channel, 0)
    parts.channel.answer(10)
    assert parts.sender.next_ms == 10_010
    parts.subscribe(10_010)
    parts.push(12_000)
    parts.channel.answer(12_010)
    assert (parts.sender.state, parts.sender.next_ms) == (TelemetryState.PUSH_NEEDED, 13_010)


def test_brokers_that_do_not_offer_telemetry_are_asked_nothing(parts: Parts) -> None:
    parts.channel.offered = False
    parts.sender.maybe_send(parts.channel, 0)
    assert parts.channel.sent == []
    assert parts.channel.connected == []
    assert parts.sender.next_ms == DEFAULT_PUSH_INTERVAL_MS
    with pytest.raises(KafkaTimeoutError, match="nobody receives metrics"):
        steps.run(parts.telemetry.client_instance_id(parts.time.timer(0)), parts.time)


@pytest.mark.parametrize(("offered", "node"), [(None, NODE), (True, None)])
def test_without_a_broker_to_ask_the_sender_looks_again(
    parts: Parts, offered: bool | None, node: Node | None
) -> None:
    parts.channel.offered, parts.channel.node = offered, node
    parts.sender.maybe_send(parts.channel, 0)
    assert (parts.channel.sent, parts.channel.connected, parts.sender.next_ms) == ([], [], 100)


def test_a_broker_that_is_not_ready_is_connected_to(parts: Parts) -> None:
    parts.channel.ready = False
    parts.sender.maybe_send(parts.channel, 0)
    assert (parts.channel.sent, parts.channel.connected, parts.sender.next_ms) == ([], [NODE], 100)
    parts.channel.ready = True
    parts.subscribe(100)


def test_metrics_that_are_too_large_are_not_pushed(parts: Parts, caplog: pytest.LogCaptureFixture) -> None:
    parts.subscribe(telemetry_max_bytes=20, accepted_compression_types=[])
    parts.sender.maybe_send(parts.channel, 1500)
    assert len(parts.channel.sent) == 1
    assert parts.sender.next_ms == 2500
    assert "telemetry.max.bytes" in caplog.text


def test_the_last_push_says_that_it_is_the_last(parts: Parts) -> None:
    parts.subscribe()
    assert parts.sender.terminate(parts.channel, 100)
    push = parts.channel.sent[-1]
    assert push.terminating
    assert names(push) == ["org.apache.kafka.producer.record.send.rate"]
    parts.channel.answer(110, PushTelemetryResponse())
    assert parts.sender.state is TelemetryState.TERMINATED


@pytest.mark.parametrize("asked", [True, False])
def test_a_client_that_nobody_wants_metrics_of_ends_without_a_word(parts: Parts, asked: bool) -> None:
    if asked:
        parts.sender.maybe_send(parts.channel, 0)
    assert not parts.sender.terminate(parts.channel, 10)
    if asked:  # the answer comes too late
        parts.channel.answer(20, GetTelemetrySubscriptionsResponse(client_instance_id=CLIENT))
    assert parts.sender.state is TelemetryState.TERMINATED
    assert len(parts.channel.sent) == asked


def test_behind_a_push_in_progress_at_the_end_comes_the_last_one(parts: Parts) -> None:
    parts.subscribe()
    parts.push(1500)
    not_answered = parts.channel.take_answer()
    assert parts.sender.terminate(parts.channel, 1510)
    assert [push.terminating for push in parts.channel.sent[-2:]] == [False, True]
    last = parts.channel.take_answer()
    not_answered(1520, PushTelemetryResponse())
    assert parts.sender.state is TelemetryState.TERMINATING_PUSH_IN_PROGRESS
    last(1521, PushTelemetryResponse())
    assert parts.sender.state is TelemetryState.TERMINATED
