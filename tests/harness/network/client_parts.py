"""The parts of a NetworkClient over a Selector that only notes what it is told."""

from __future__ import annotations

from typing import Any

from harness.mock_time import MockTime
from kclient.client.connection_reports import ConnectionReports
from kclient.client.connection_states import ConnectionStates
from kclient.client.network_metrics import NetworkMetrics
from kclient.client.node_connections import NodeConnections
from kclient.client.request_pipeline import RequestPipeline
from kclient.client.requests import ClientResponse, RequestFactory
from kclient.client.sessions import Sessions
from kclient.common.node import Node
from kclient.errors import KafkaError
from kclient.metrics import Metrics
from kclient.network.send import NetworkSend
from kclient.protocol.header import response_buffers
from kclient.protocol.messages.heartbeat import HeartbeatRequest
from kclient.utils.log_context import LogContext
from kclient.utils.time import SYSTEM_TIME, Time

NODE = Node(1, "host", 9092)
BEAT = HeartbeatRequest(group_id="g", member_id="m")


def network_metrics(time: Time = SYSTEM_TIME) -> NetworkMetrics:
    """Metrics of connections that nobody reads."""
    return NetworkMetrics(Metrics(time, "producer-metrics", {}), time, authenticates=False)


class NotedSelector:
    """Takes every send and writes it when `write` says so."""

    def __init__(self) -> None:
        self.completed_sends: dict[str, NetworkSend] = {}
        self.under_way: dict[str, NetworkSend] = {}
        self.connected: list[tuple[str, str, int]] = []
        self.closed: list[str] = []
        self.again: list[str] = []
        self.lifetime_ms = 0
        self.refuses: OSError | None = None

    def connect(self, channel_id: str, address: str, port: int, **options: Any) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.connected.append((channel_id, address, port))

    def is_channel_ready(self, channel_id: str) -> bool:
        return channel_id not in self.closed

    def send(self, channel_id: str, send: NetworkSend) -> None:
        assert channel_id not in self.under_way
        self.under_way[channel_id] = send

    def write(self) -> None:
        """Complete every send."""
        self.completed_sends, self.under_way = self.under_way, {}
        for send in self.completed_sends.values():
            send.remaining = 0

    def session_lifetime_ms(self, channel_id: str) -> int:
        return self.lifetime_ms

    def authenticate_again(self, channel_id: str) -> None:
        self.again.append(channel_id)

    def step(self, channel_id: str) -> str:
        return "tcp"

    def close_channel(self, channel_id: str) -> None:
        self.closed.append(channel_id)


class NotedUpdater:
    """Notes what the updater of the metadata is told."""

    def __init__(self) -> None:
        self.failures: list[KafkaError] = []
        self.start_again_for: list[str] = []
        self.checked_cluster_id: str | None = None

    def handle_connection_failure(self, error: KafkaError) -> None:
        self.failures.append(error)

    def start_again(self, reason: str) -> None:
        self.start_again_for.append(reason)


class ClientParts:
    """The parts of a NetworkClient, put together without sockets and metadata."""

    def __init__(self, max_in_flight: int = 5, metrics: NetworkMetrics | None = None) -> None:
        self.time = MockTime()
        self.selector: Any = NotedSelector()
        self.states = ConnectionStates(
            reconnect_backoff_ms=100,
            reconnect_backoff_max_ms=1000,
            setup_timeout_ms=1000,
            setup_timeout_max_ms=8000,
            resolve=lambda host: ["10.0.0.1"],
        )
        self.new_request = RequestFactory(30_000)
        self.updater: Any = NotedUpdater()
        self.failures: list[KafkaError] = self.updater.failures
        self.metrics = network_metrics(self.time) if metrics is None else metrics
        self.pipeline = RequestPipeline(
            self.selector,
            self.states,
            self.metrics,
            max_in_flight=max_in_flight,
            client_id="parts",
            log_context=LogContext(),
        )
        self.sessions = Sessions(self.selector, self.states, self.pipeline.in_flight, 30_000)
        self.connections = NodeConnections(
            self.selector,
            self.states,
            self.pipeline,
            self.sessions,
            self.new_request,
            self.updater,
            ConnectionReports(LogContext(), "PLAINTEXT", lambda: True),
            self.metrics,
            self.time,
            LogContext(),
        )

    def make_ready(self, node_id: int = 1) -> None:
        """A connection that takes requests."""
        self.states.connecting(node_id, "host", 0)
        self.states.checking_api_versions(node_id)
        self.states.ready(node_id)

    def transmit(
        self,
        message: Any = BEAT,
        *,
        node_id: int = 1,
        version: int = 4,
        internal: bool = False,
        **options: Any,
    ) -> list[ClientResponse]:
        """Send at the time 0 and write it; returns what its callback is going to be called with."""
        done: list[ClientResponse] = []
        request = self.new_request(node_id, message, on_complete=done.append, **options)
        self.pipeline.transmit(request, message, version, 0, internal=internal)
        self.selector.write()
        return done

    def answer(self, message: Any, *, number: int, api_key: Any, version: int = 4) -> KafkaError | None:
        """A frame from node 1 at the time 10; returns what it says of the connection."""
        frame = b"".join(response_buffers(message, api_key, version, number))[4:]
        return self.pipeline.answered(1, memoryview(frame), 10)
