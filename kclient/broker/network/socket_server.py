"""SocketServer: the listening sockets of a broker, each with its acceptor and its processors."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kclient.broker.network.acceptor import Acceptor
from kclient.broker.network.connection_quotas import (
    ConnectionLimits,
    ConnectionQuotas,
    by_address,
    parse_overrides,
)
from kclient.broker.network.listener import Endpoint
from kclient.broker.network.processor import Processor
from kclient.broker.network.request_channel import RequestChannel
from kclient.broker.network.request_memory import RequestMemory
from kclient.broker.quota.connection_rates import ConnectionRates
from kclient.broker.security.listener_security import ListenerSecurity
from kclient.errors import ConfigError
from kclient.utils.log_context import LogContext
from kclient.utils.time import Time

if TYPE_CHECKING:
    from kclient.broker.config import BrokerConfig


class SocketServer:
    """Binds at construction, so that the port is known; serves after `start`. Thread-safe.

    `descriptors` is the most connections for which the process has some; `security` has one entry for each listener.
    Raises ConfigError naming `listeners` if an address cannot be bound, or the setting that is wrong of its security or
    of the limits of connections.
    """

    def __init__(
        self,
        config: BrokerConfig,
        time: Time,
        log_context: LogContext,
        *,
        descriptors: int,
        security: Sequence[ListenerSecurity],
        rates: ConnectionRates,
    ) -> None:
        self.request_channel = RequestChannel(config.queued_max_requests)
        self.request_memory = RequestMemory(config.queued_max_request_bytes)
        self.quotas = ConnectionQuotas(connection_limits(config), descriptors)
        self._rates = rates
        for each in security:
            each.check()
        listeners = [each.listener for each in security]
        sockets: list[socket.socket] = []
        try:
            sockets.extend(_bind(one.endpoint, config.socket_listen_backlog_size) for one in listeners)
        except BaseException:
            for sock in sockets:
                sock.close()
            raise
        self.endpoints: list[Endpoint] = [
            Endpoint(listener.endpoint.host, sock.getsockname()[1])
            for listener, sock in zip(listeners, sockets, strict=True)
        ]
        """The listeners with the ports they really have."""
        self._processors: list[Processor] = []
        self._acceptors: list[Acceptor] = []
        for number, (each, sock) in enumerate(zip(security, sockets, strict=True)):
            first = len(self._processors)
            mine = [
                Processor(
                    first + place, number, each, config, self.request_channel, self.request_memory, self.quotas,
                    time, log_context,
                )
                for place in range(config.num_network_threads)
            ]  # fmt: skip
            self._processors += mine
            name = f"{each.listener.name}-{number}"
            self._acceptors.append(
                Acceptor(name, sock, config, mine, self.quotas, rates, number, time, log_context)
            )

    def use_settings(self, config: BrokerConfig) -> None:
        """Have the limits on connections of these settings from now on."""
        self.quotas.set_limits(connection_limits(config))
        self._rates.set_limits(config)

    def measure_time(self, measured: bool) -> None:
        """Measure what network threads do for each request, to be held against quotas; or do so no longer."""
        for processor in self._processors:
            processor.measure_time(measured)

    @property
    def processors(self) -> Sequence[Processor]:
        """The network threads of all listeners."""
        return self._processors

    def start(self) -> None:
        """Begin to accept and read."""
        for processor in self._processors:
            processor.start()
        for acceptor in self._acceptors:
            acceptor.start()

    def stop_accepting(self) -> None:
        """Take no new connections; those that exist go on. The first half of a shutdown."""
        for acceptor in self._acceptors:
            acceptor.shutdown()

    def shutdown(self) -> None:
        """Close everything. Idempotent."""
        self.stop_accepting()
        for processor in self._processors:
            processor.begin_shutdown()
        for processor in self._processors:
            processor.shutdown()


def connection_limits(config: BrokerConfig) -> ConnectionLimits:
    """Return the limits of a broker with these settings. Raises ConfigError for a host that cannot be resolved."""
    listeners = config.listeners_with_security()
    names = [listener.name for listener in listeners]
    brokers = config.inter_broker_listener_name
    return ConnectionLimits(
        total=config.max_connections,
        per_address=config.max_connections_per_ip,
        listeners=[config.listener_config(listener).max_connections for listener in listeners],
        overrides=by_address(parse_overrides(config.max_connections_per_ip_overrides)),
        protected=names.index(brokers) if len(names) > 1 and brokers in names else None,
    )


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
