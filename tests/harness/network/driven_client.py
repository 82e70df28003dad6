"""A NetworkClient for tests, driven by the test's own thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

import attrs

from harness.network.client_parts import network_metrics
from kclient.client.assembly import build_network_client
from kclient.client.metadata import Metadata
from kclient.client.metadata_schedule import MetadataSchedule
from kclient.client.requests import ClientResponse
from kclient.common.node import Node
from kclient.config.values import Password
from kclient.utils.backoff import ExponentialBackoff
from kclient.utils.log_context import LogContext
from kclient.utils.time import SYSTEM_TIME


@attrs.define
class Settings:
    """The settings of `build_network_client`, with waits short enough for tests."""

    bootstrap_servers: Sequence[str]
    client_id: str = "driven"
    client_dns_lookup: str = "use_all_dns_ips"
    connections_max_idle_ms: int = -1
    kclient_proxy_url: Password | None = None
    enable_metrics_push: bool = True
    kclient_receive_max_bytes: int = 104_857_600
    metadata_cluster_check_enable: bool = True
    metadata_recovery_rebootstrap_trigger_ms: int = 300_000
    metadata_recovery_strategy: str = "rebootstrap"
    receive_buffer_bytes: int = 65_536
    reconnect_backoff_max_ms: int = 50
    reconnect_backoff_ms: int = 5
    request_timeout_ms: int = 20_000
    security_protocol: str = "PLAINTEXT"
    send_buffer_bytes: int = 131_072
    socket_connection_setup_timeout_max_ms: int = 20_000
    socket_connection_setup_timeout_ms: int = 10_000

    def log_context(self) -> LogContext:
        return LogContext(f"[{self.client_id}] ")


class DrivenClient:
    """Client and metadata, polled until something came true; nothing runs by itself."""

    def __init__(self, *servers: str, max_in_flight: int = 5, **settings: Any) -> None:
        self.metadata = Metadata(MetadataSchedule(ExponentialBackoff(5, 50), 300_000))
        self.client = build_network_client(
            Settings(list(servers), **settings),
            metadata=self.metadata,
            max_in_flight=max_in_flight,
            metrics=network_metrics(),
        )
        self.responses: list[ClientResponse] = []

    def poll_until(self, condition: Callable[[], object], timeout_ms: int = 20_000) -> None:
        """Poll until `condition()`; fail after `timeout_ms`."""
        timer = SYSTEM_TIME.timer(timeout_ms)
        while not condition():
            assert not timer.is_expired(), "it did not come true"
            # Bounded, because a condition may come true on a thread that does not wake the client.
            self.responses += self.client.poll(min(timer.remaining_ms(), 50), timer.now_ms())

    def update_metadata(self) -> None:
        """Wait for one metadata update."""
        version = self.metadata.request_update()
        self.poll_until(lambda: self.metadata.update_version > version)

    def node(self, node_id: int = 0) -> Node:
        """The broker with this id, connected and ready."""
        if self.metadata.is_bootstrapping:
            self.update_metadata()
        node = self.metadata.fetch().node_by_id(node_id)
        assert node is not None
        self.poll_until(lambda: self.client.ready(node, SYSTEM_TIME.monotonic_ms()))
        return node

    def send(self, message: Any, *, node_id: int = 0, **options: Any) -> None:
        """Send to a broker as soon as it is ready."""
        node = self.node(node_id)
        now_ms = SYSTEM_TIME.monotonic_ms()
        self.client.send(self.client.new_request(node.id, message, **options), now_ms)

    def take(self) -> ClientResponse:
        """The next response."""
        self.poll_until(lambda: self.responses)
        return self.responses.pop(0)

    def call(self, message: Any, **options: Any) -> ClientResponse:
        """Send and wait for the response."""
        self.send(message, **options)
        return self.take()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.close()
