"""SocketServer: the listening sockets, the acceptor and the processors of a broker."""

from __future__ import annotations

import socket
from collections.abc import Sequence

import attrs

from kclient.broker.network.acceptor import Acceptor
from kclient.broker.network.connection_quotas import ConnectionQuotas
from kclient.broker.network.processor import Processor
from kclient.broker.network.request_channel import RequestChannel
from kclient.broker.network.request_memory import RequestMemory
from kclient.errors import ConfigError
from kclient.network.channel_builder import PlaintextChannelBuilder
from kclient.utils.log_context import LogContext
from kclient.utils.time import Time


@attrs.frozen
class Endpoint:
    """The address at which clients reach a broker. An IPv6 host has no brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@attrs.frozen
class NetworkSettings:
    """The settings of the broker that the server needs."""

    listeners: Sequence[Endpoint]
    backlog: int
    processors: int
    queued_max_requests: int
    queued_max_request_bytes: int
    max_request_bytes: int
    max_connections: int
    max_connections_per_ip: int
    connections_max_idle_ms: int
    send_buffer_bytes: int
    receive_buffer_bytes: int
    descriptors: int
    """Most connections for which the process has descriptors."""


class SocketServer:
    """Binds at construction, so that the port is known; serves after `start`. Thread-safe.

    Raises ConfigError naming `listeners` if an address cannot be bound.
    """

    def __init__(self, settings: NetworkSettings, time: Time, log_context: LogContext) -> None:
        self.request_channel = RequestChannel(settings.queued_max_requests)
        self.request_memory = RequestMemory(settings.queued_max_request_bytes)
        self.quotas = ConnectionQuotas(
            settings.max_connections, settings.max_connections_per_ip, settings.descriptors
        )
        sockets: list[socket.socket] = []
        try:
            sockets.extend(_bind(listener, settings.backlog) for listener in settings.listeners)
        except BaseException:
            for sock in sockets:
                sock.close()
            raise
        self.endpoints: list[Endpoint] = [
            Endpoint(listener.host, sock.getsockname()[1])
            for listener, sock in zip(settings.listeners, sockets, strict=True)
        ]
        """The listeners with the ports they really have."""
        self._processors = [
            Processor(
                number,
                request_channel=self.request_channel,
                request_memory=self.request_memory,
                quotas=self.quotas,
                channel_builder=PlaintextChannelBuilder(),
                max_request_bytes=settings.max_request_bytes,
                connections_max_idle_ms=settings.connections_max_idle_ms,
                time=time,
                log_context=log_context,
            )
            for number in range(settings.processors)
        ]
        self._acceptor = Acceptor(
            sockets,
            self._processors,
            self.quotas,
            send_buffer_bytes=settings.send_buffer_bytes,
            receive_buffer_bytes=settings.receive_buffer_bytes,
            time=time,
            log_context=log_context,
        )

    def start(self) -> None:
        """Begin to accept and read."""
        for processor in self._processors:
            processor.start()
        self._acceptor.start()

    def stop_accepting(self) -> None:
        """Take no new connections; those that exist go on. The first half of a shutdown."""
        self._acceptor.shutdown()

    def shutdown(self) -> None:
        """Close everything. Idempotent."""
        self._acceptor.shutdown()
        for processor in self._processors:
            processor.begin_shutdown()
        for processor in self._processors:
            processor.shutdown()


def _bind(listener: Endpoint, backlog: int) -> socket.socket:
    try:
        found = socket.getaddrinfo(
            listener.host or None, listener.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _, address = found[0]
        sock = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ConfigError(f"listeners: {listener} cannot be used: {error}", name="listeners") from error
    try:
        # A restart must not wait for the connections of the last run to leave TIME_WAIT.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(backlog)
    except OSError as error:
        sock.close()
        raise ConfigError(f"listeners: {listener} cannot be bound: {error}", name="listeners") from error
    return sock
