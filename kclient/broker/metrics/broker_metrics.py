"""BrokerMetrics: all metrics of a running broker."""

from __future__ import annotations

import itertools

from kclient.broker.broker_context import BrokerContext
from kclient.broker.log.log_manager import LogManager
from kclient.broker.metrics.coordinator_readout import read_broker
from kclient.broker.metrics.idle_time import SAMPLE_MS
from kclient.broker.metrics.network_readout import read_network
from kclient.broker.metrics.quota_readout import read_quotas
from kclient.broker.metrics.readout import Readout
from kclient.broker.metrics.storage_readout import read_cleaner, read_logs, read_replicas, read_topics
from kclient.broker.network.socket_server import SocketServer
from kclient.broker.request_handler import RequestHandlerPool
from kclient.broker.timer.scheduler import Scheduler
from kclient.metrics import Measurement

_WINDOW_SAMPLES = 30  # windows of five minutes, of which two are looked at


class BrokerMetrics:
    """Reads out what the parts of a broker have counted. Thread-safe.

    The parts count as they go; all that is computed, such as percentiles, is computed here, when it is asked for.
    """

    def __init__(
        self, server: SocketServer, handlers: RequestHandlerPool, broker: BrokerContext, logs: LogManager
    ) -> None:
        self._server = server
        self._handlers = handlers
        self._broker = broker
        self._logs = logs
        self._samples = itertools.count(1)

    def start(self, scheduler: Scheduler) -> None:
        """Let `scheduler` call `sample`."""
        scheduler.schedule("metrics", self.sample, SAMPLE_MS, SAMPLE_MS)

    def sample(self) -> None:
        """Do what has to be done every ten seconds: idle shares and windows of times go on."""
        for pool in (self._handlers.idle, *(processor.idle for processor in self._server.processors)):
            pool.sample()
        if next(self._samples) % _WINDOW_SAMPLES == 0:
            for requests in self._server.request_metrics():
                requests.rotate()
            for directory in self._logs.log_dirs:
                directory.commits.flush_times.rotate()

    def measurements(self) -> list[Measurement]:
        """Return every metric with its value now."""
        out = Readout()
        read_network(out, self._server, self._handlers)
        read_topics(out, self._broker.replicas)
        read_replicas(out, self._broker.replicas)
        read_logs(out, self._logs)
        read_cleaner(out, self._logs)
        read_broker(out, self._broker)
        read_quotas(out, self._broker.quotas)
        return out.measurements
