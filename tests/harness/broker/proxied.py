"""An embedded broker that clients reach through a proxy that can spoil what passes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from harness.network.ports import free_port
from harness.network.proxy import FaultProxy
from kclient.broker.embedded import EmbeddedKafka


@contextmanager
def proxied_broker() -> Iterator[tuple[FaultProxy, str]]:
    """The proxy, whose address the broker tells its clients, and the broker's own, past all faults."""
    port = free_port()
    with FaultProxy(("127.0.0.1", port)) as proxy:
        settings = {
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "advertised.listeners": f"PLAINTEXT://{proxy.bootstrap}",
        }
        with EmbeddedKafka(settings):
            yield proxy, f"127.0.0.1:{port}"
