"""SocketServer: the listening sockets, the acceptor and the processors of a broker."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import attrs

from kclient.broker.network.acceptor import Acceptor
from kclient.broker.network.connection_quotas import ConnectionQuotas
from kclient.broker.network.processor import Processor
from kclient.broker.network.request_channel import RequestChannel
from kclient.broker.network.request_memory import RequestMemory
from kclient.errors import ConfigError
from kclient.utils.log_context import LogContext
from kclient.utils.text import host_and_port
from kclient.utils.time import Time

if TYPE_CHECKING:
    from kclient.broker.config import BrokerConfig


@attrs.frozen
class Endpoint:
    """The address at which clients reach a broker. An IPv6 host has no brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        return host_and_port(self.host, self.port)


class SocketServer:
    """Binds at construction, so that the port is known; serves after `start`. Thread-safe.

    `descriptors` is the most connections for which the process has some. Raises ConfigError naming `listeners` if an
    address cannot be bound.
    """

    def __init__(
        self, config: BrokerConfig, time: Time, log_context: LogContext, *, descriptors: int
    ) -> None:
        self.request_channel = RequestChannel(config.queued_max_requests)
        self.request_memory = RequestMemory(config.queued_max_request_bytes)
        self.quotas = ConnectionQuotas(config.max_connections, config.max_connections_per_ip, descriptors)
        listeners = config.endpoints()
        sockets: list[socket.socket] = []
        try:
            sockets.extend(_bind(listener, config.socket_listen_backlog_size) for listener in listeners)
        except BaseException:
            for sock in sockets:
                sock.close()
            raise
        self.endpoints: list[Endpoint] = [
            Endpoint(listener.host, sock.getsockname()[1])
            for listener, sock in zip(listeners, sockets, strict=True)
        ]
        """The listeners with the ports they really have."""
        self._processors = [
            Processor(
                number, config, self.request_channel, self.request_memory, self.quotas, time, log_context
            )
            for number in range(config.num_network_threads)
        ]
        self._acceptor = Acceptor(sockets, config, self._processors, self.quotas, time, log_context)

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
