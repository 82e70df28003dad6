"""NetworkMetrics: the metrics of a client's connections and of the brokers behind them, under Java's names."""

from __future__ import annotations

import threading
from collections import defaultdict

import attrs

from kclient.metrics import Avg, Max, MetricGroup, Metrics, Rate, Ratio, Total
from kclient.utils.time import NS_PER_MS, Time

# Ten sensors for every request would cost as much as the request: they are told once in a while, and when asked.
_FOLD_MS = 1000


@attrs.define(eq=False)
class Traffic:
    """Requests to one node, and its answers, so far. Written by the I/O thread alone, without a lock.

    Sums only grow: a reader remembers what it saw. The largest ones begin anew when they were read.
    """

    requests: int = 0
    request_bytes: int = 0
    largest_request_bytes: int = 0
    responses: int = 0
    response_bytes: int = 0
    latency_ms: int = 0
    longest_latency_ms: int = 0


class _TrafficSensors:
    """The sensors of the traffic with one node, or with all."""

    def __init__(self, metrics: MetricGroup) -> None:
        self._requests = metrics.sensor("request", "number of requests sent", Rate, Total)
        self._request_size = metrics.sensor("request-size", "bytes of a request", Avg, Max)
        self._outgoing = metrics.sensor("outgoing-byte", "bytes of requests sent", Rate, Total)
        self._responses = metrics.sensor("response", "number of responses received", Rate, Total)
        self._incoming = metrics.sensor("incoming-byte", "bytes of responses received", Rate, Total)

    def record(self, seen: Traffic) -> None:
        if seen.requests:
            self._requests.record(seen.requests)
            self._request_size.record(seen.request_bytes, seen.requests, seen.largest_request_bytes)
            self._outgoing.record(seen.request_bytes)
        if seen.responses:
            self._responses.record(seen.responses)
            self._incoming.record(seen.response_bytes)


class _Node:
    """The metrics of one node, and what they know of its traffic."""

    def __init__(self, metrics: MetricGroup, now_ms: int) -> None:
        self.metrics = metrics
        self.changed_ms = now_ms
        self._told = Traffic()
        self._sensors = _TrafficSensors(metrics)
        self._latency = metrics.sensor("request-latency", "ms until a request was answered", Avg, Max)

    def tell(self, traffic: Traffic) -> Traffic | None:
        """Hand to the sensors what came since the last time, and return it; None if there is nothing."""
        told = self._told
        seen = Traffic(
            requests=traffic.requests - told.requests,
            request_bytes=traffic.request_bytes - told.request_bytes,
            largest_request_bytes=traffic.largest_request_bytes,
            responses=traffic.responses - told.responses,
            response_bytes=traffic.response_bytes - told.response_bytes,
            latency_ms=traffic.latency_ms - told.latency_ms,
            longest_latency_ms=traffic.longest_latency_ms,
        )
        if not seen.requests and not seen.responses:
            return None
        # One that comes right here is not seen: a maximum is not worth a lock for every request.
        traffic.largest_request_bytes = traffic.longest_latency_ms = 0
        told.requests += seen.requests
        told.request_bytes += seen.request_bytes
        told.responses += seen.responses
        told.response_bytes += seen.response_bytes
        told.latency_ms += seen.latency_ms
        self._sensors.record(seen)
        if seen.responses:
            self._latency.record(seen.latency_ms, seen.responses, seen.longest_latency_ms)
        return seen


class NetworkMetrics:
    """Metrics of connections, nodes and polls, in the group of `metrics` and, for nodes, in one beside it.

    The I/O thread counts in plain numbers, of which `fold` makes metrics: about once a second, and when somebody asks.
    A node's metrics go once it has no connection and no sensor remembers it. `authenticates` says that there is
    something to prove over a connection, with TLS or SASL. Only `fold` may be called from any thread.
    """

    def __init__(self, metrics: Metrics, time: Time, *, authenticates: bool) -> None:
        self.traffic: defaultdict[int, Traffic] = defaultdict(Traffic)
        """The traffic by node id: the I/O thread counts here."""
        self._metrics = metrics
        self._time = time
        self._authenticates = authenticates
        self._node_group = metrics.group.removesuffix("-metrics") + "-node-metrics"
        # Reentrant: a signal handler or a __del__ that interrupts its holder may need it.
        self._lock = threading.RLock()
        self._nodes: dict[int, _Node] = {}
        self._open: set[int] = set()
        self._polls = self._waited_ms = self._worked_ms = 0
        self._told_polls = 0, 0, 0
        self._polled_ms = time.monotonic_ms()
        self._fold_at_ms = self._polled_ms + _FOLD_MS
        self._sensors = _TrafficSensors(metrics)
        sensor = metrics.sensor
        self._network_io = sensor("network-io", "number of requests sent and responses received", Rate, Total)
        self._created = sensor("connection-creation", "number of connections made", Rate, Total)
        self._closed = sensor("connection-close", "number of connections closed", Rate, Total)
        metrics.gauge("connection-count", "The number of connections", lambda: len(self._open))
        self._authenticated = sensor("successful-authentication", "number of authentications", Rate, Total)
        self._refused = sensor("failed-authentication", "number of failed authentications", Rate, Total)
        self._renewed = sensor("successful-reauthentication", "number of sessions renewed", Rate, Total)
        self._not_renewed = sensor(
            "failed-reauthentication", "number of sessions that could not be renewed", Rate, Total
        )
        self._renewal = sensor("reauthentication-latency", "ms until a session was renewed", Avg, Max)
        self._selects = sensor("select", "number of polls of the I/O thread", Rate, Total)
        self._wait = sensor("io-wait-time-ns", "ns that a poll of the I/O thread took", Avg, Total)
        self._wait_ratio = sensor("io-wait", "that the I/O thread is in polls", Ratio)
        self._work = sensor("io-time-ns", "ns between two polls of the I/O thread", Avg, Total)
        self._work_ratio = sensor("io", "that the I/O thread works between polls", Ratio)

    def opened(self, node_id: int) -> None:
        """A connection takes requests for the first time."""
        self._open.add(node_id)
        self._created.record()
        if self._authenticates:
            self._authenticated.record()

    def closed(self, node_id: int) -> None:
        """A connection is gone, if there was one."""
        if node_id in self._open:
            self._open.discard(node_id)
            self._closed.record()

    def refused(self, *, again: bool) -> None:
        """A broker did not take who this is, or, with `again`, no longer takes it."""
        (self._not_renewed if again else self._refused).record()

    def renewed(self, latency_ms: int) -> None:
        """A session was renewed."""
        self._renewed.record()
        self._renewal.record(latency_ms)

    def polled(self, before_ms: int, after_ms: int) -> None:
        """The I/O thread polled from `before_ms` until `after_ms`, and worked since the poll before."""
        self._polls += 1
        self._waited_ms += after_ms - before_ms
        self._worked_ms += before_ms - self._polled_ms
        self._polled_ms = after_ms
        if after_ms >= self._fold_at_ms:
            self._fold_at_ms = after_ms + _FOLD_MS
            self.fold()
            self._remove_gone_nodes(after_ms)

    def fold(self) -> None:
        """Hand what was counted since the last time to the sensors."""
        now_ms = self._time.monotonic_ms()
        with self._lock:
            for node_id, traffic in list(self.traffic.items()):
                node = self._nodes.get(node_id)
                if node is None:
                    group = self._metrics.in_group(self._node_group, {"node-id": f"node-{node_id}"})
                    node = self._nodes[node_id] = _Node(group, now_ms)
                seen = node.tell(traffic)
                if seen is not None:
                    node.changed_ms = now_ms
                    self._sensors.record(seen)
                    self._network_io.record(seen.requests + seen.responses)
            self._tell_polls()

    def _tell_polls(self) -> None:
        now = self._polls, self._waited_ms, self._worked_ms
        polls, waited_ms, worked_ms = (new - old for new, old in zip(now, self._told_polls, strict=True))
        if polls:
            self._told_polls = now
            self._selects.record(polls)
            self._wait.record(waited_ms * NS_PER_MS, polls)
            self._wait_ratio.record(waited_ms / 1000)
            self._work.record(worked_ms * NS_PER_MS, polls)
            self._work_ratio.record(worked_ms / 1000)

    def _remove_gone_nodes(self, now_ms: int) -> None:
        # By the I/O thread alone, which would go on to count what nobody reads.
        with self._lock:
            for node_id, node in list(self._nodes.items()):
                if node_id not in self._open and now_ms - node.changed_ms >= self._metrics.kept_ms:
                    del self._nodes[node_id], self.traffic[node_id]
                    self._metrics.remove(node.metrics)
