"""SocketServer: the listening sockets of a broker, each with its acceptor and its processors."""

from __future__ import annotations

import itertools
import socket
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

from kclient.broker.metrics.request_metrics import RequestMetrics
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
from kclient.broker.security.listener_config import ListenerConfig
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
        self._config = config
        self._time = time
        self._log_context = log_context
        self._log = log_context.logger(__name__)
        self._lock = threading.Lock()  # held to change the number of processors
        self._ids = itertools.count()
        self._measured = self._started = self._stopped = False
        self._retired: set[Processor] = set()  # that are ending
        self._departed = RequestMetrics()  # of those that have ended
        self._security = list(security)
        self._processors: list[list[Processor]] = [
            [self._processor(number, each) for _ in range(each.config.num_network_threads)]
            for number, each in enumerate(security)
        ]
        self._acceptors: list[Acceptor] = []
        for number, (each, sock) in enumerate(zip(security, sockets, strict=True)):
            name = f"{each.listener.name}-{number}"
            mine = self._processors[number]
            self._acceptors.append(
                Acceptor(name, sock, config, mine, self.quotas, rates, number, time, log_context)
            )

    def use_settings(self, config: BrokerConfig) -> None:
        """Have what can be changed of listeners as these settings say from now on: limits on connections, threads, keys
        and certificates. A thread that is one too many has what it was asked answered and closes its connections.
        """
        self.quotas.set_limits(connection_limits(config))
        self._rates.set_limits(config)
        with self._lock:
            if not self._stopped:
                for number, each in enumerate(self._security):
                    self._use_listener(number, config.listener_config(each.listener))

    def measure_time(self, measured: bool) -> None:
        """Measure what network threads do for each request, to be held against quotas; or do so no longer."""
        with self._lock:
            self._measured = measured
            for processor in self.processors:
                processor.measure_time(measured)

    @property
    def processors(self) -> Sequence[Processor]:
        """The network threads of all listeners."""
        return list(itertools.chain.from_iterable(self._processors))

    def request_metrics(self) -> list[RequestMetrics]:
        """Return what was counted of requests by each of them, and by those that are no more."""
        with self._lock:
            return [self._departed, *(one.metrics for one in (*self.processors, *self._retired))]

    def start(self) -> None:
        """Begin to accept and read."""
        with self._lock:
            self._started = True
            for processor in self.processors:
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
        with self._lock:
            self._stopped = True
            processors = [*self.processors, *self._retired]
        for processor in processors:
            processor.begin_shutdown()
        for processor in processors:
            processor.shutdown()

    def _use_listener(self, number: int, config: ListenerConfig) -> None:
        """Under the lock."""
        before = self._security[number]
        if config == before.config:
            return
        security = attrs.evolve(before, config=config)
        mine = self._processors[number]
        wanted = config.num_network_threads
        kept, leaving = mine[:wanted], mine[wanted:]
        try:
            added = [self._processor(number, security) for _ in range(wanted - len(kept))]
        except ConfigError as error:
            # They could be used when they were set, or at the last start.
            self._log.error("%s keeps its threads, keys and certificates: %s", security.listener, error)
            return
        self._security[number] = security
        for processor in kept:
            processor.use_certificates(config)
        for processor in added:
            processor.measure_time(self._measured)
            if self._started:
                processor.start()
        self._processors[number] = kept + added
        self._acceptors[number].use_processors(kept + added)
        self._retired.update(leaving)
        for processor in leaving:
            processor.retire(self._count_departed)

    def _processor(self, number: int, security: ListenerSecurity) -> Processor:
        """Return a new one of a listener. Raises ConfigError."""
        return Processor(
            next(self._ids), number, security, self._config, self.request_channel, self.request_memory, self.quotas,
            self._time, self._log_context,
        )  # fmt: skip

    def _count_departed(self, processor: Processor) -> None:
        with self._lock:
            self._departed.take_in(processor.metrics)
            self._retired.discard(processor)


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
