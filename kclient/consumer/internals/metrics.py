"""The metrics of a consumer, under Java's names. Recorded per fetch and per poll, never per record."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

import attrs

from kclient.client.network_metrics import NetworkMetrics
from kclient.consumer.config import ConsumerConfig
from kclient.metrics import Avg, Max, Measurement, Metrics, MetricValues, Rate, Total
from kclient.utils.time import Time

# How often what was seen is handed to the sensors; a reader of the metrics gets the rest.
_FOLD_MS = 1000


@attrs.define
class _Seen:
    """Sums and largest values over some fetches and polls."""

    fetches: int = 0
    latency_ms: int = 0
    longest_latency_ms: int = 0
    throttle_ms: int = 0
    longest_throttle_ms: int = 0
    partitions: int = 0
    bytes: int = 0
    largest_bytes: int = 0
    records: int = 0
    polls: int = 0
    between_polls_ms: int = 0
    longest_between_polls_ms: int = 0


class ConsumerMetrics:
    """The sensors of one consumer. Thread-safe.

    A sensor costs as much as reading a hundred records, so fetches and polls are summed up first.
    """

    def __init__(self, config: ConsumerConfig, time: Time) -> None:
        self._lock = threading.Lock()
        self._seen = _Seen()
        self._folded_ms = 0
        self._metrics = consumer = Metrics(
            time,
            "consumer-metrics",
            {"client-id": config.client_id},
            window_ms=config.metrics_sample_window_ms,
            samples=config.metrics_num_samples,
        )
        self._fetch = fetch = consumer.in_group("consumer-fetch-manager-metrics")
        self._group = group = consumer.in_group("consumer-coordinator-metrics")
        self.network = NetworkMetrics(consumer, time, authenticates=config.security_protocol != "PLAINTEXT")
        self._requests = fetch.sensor("fetch", "number of fetch requests", Rate, Total)
        self._latency = fetch.sensor("fetch-latency", "ms until a fetch was answered", Avg, Max)
        self._throttle = fetch.sensor("fetch-throttle-time", "ms a fetch was throttled by a broker", Avg, Max)
        self._bytes = fetch.sensor("bytes-consumed", "bytes fetched", Rate, Total)
        self._size = fetch.sensor("fetch-size", "bytes fetched of a partition", Avg, Max)
        self._records = fetch.sensor("records-consumed", "number of records consumed", Rate, Total)
        self._commits = group.sensor("commit", "number of commits", Rate, Total)
        self._between_polls = consumer.sensor("time-between-poll", "ms between two calls of poll()", Avg, Max)
        self._polled_ms: int | None = None

    def fetched(self, latency_ms: int, throttle_ms: int, sizes: Iterable[int]) -> None:
        """A fetch was answered, and had these sizes of data of partitions, in bytes."""
        with self._lock:
            seen = self._seen
            seen.fetches += 1
            seen.latency_ms += latency_ms
            seen.throttle_ms += throttle_ms
            seen.longest_latency_ms = max(seen.longest_latency_ms, latency_ms)
            seen.longest_throttle_ms = max(seen.longest_throttle_ms, throttle_ms)
            for size in sizes:
                seen.partitions += 1
                seen.bytes += size
                seen.largest_bytes = max(seen.largest_bytes, size)

    def consumed(self, records: int) -> None:
        """Records were handed to the application."""
        with self._lock:
            self._seen.records += records

    def committed(self) -> None:
        """Offsets were committed."""
        self._commits.record()

    def polled(self, now_ms: int) -> None:
        """The application called poll()."""
        if self._polled_ms is not None:
            between_ms = now_ms - self._polled_ms
            with self._lock:
                seen = self._seen
                seen.polls += 1
                seen.between_polls_ms += between_ms
                seen.longest_between_polls_ms = max(seen.longest_between_polls_ms, between_ms)
        self._polled_ms = now_ms
        if now_ms - self._folded_ms >= _FOLD_MS:
            self._folded_ms = now_ms
            self._fold()

    def _fold(self) -> None:
        """Hand what was seen since the last time to the sensors."""
        with self._lock:
            seen, self._seen = self._seen, _Seen()
        if seen.fetches:
            self._requests.record(seen.fetches)
            self._latency.record(seen.latency_ms, seen.fetches, seen.longest_latency_ms)
            self._throttle.record(seen.throttle_ms, seen.fetches, seen.longest_throttle_ms)
        if seen.partitions:
            self._bytes.record(seen.bytes)
            self._size.record(seen.bytes, seen.partitions, seen.largest_bytes)
        if seen.records:
            self._records.record(seen.records)
        if seen.polls:
            self._between_polls.record(seen.between_polls_ms, seen.polls, seen.longest_between_polls_ms)

    def watch_rebalances(self, count: Callable[[], float]) -> None:
        """Take the number of rebalances so far from `count`."""
        self._group.gauge("rebalance-total", "The total number of rebalances", count, cumulative=True)

    def watch_assignment(self, assigned: Callable[[], float], max_lag: Callable[[], float]) -> None:
        """Take the number of assigned partitions from `assigned`, and the largest lag from `max_lag`."""
        self._group.gauge("assigned-partitions", "The number of partitions assigned", assigned)
        self._fetch.gauge("records-lag-max", "The largest lag of a partition, in records", max_lag)

    def collect(self) -> list[Measurement]:
        """Return every metric with its value now."""
        self._fold()
        self.network.fold()
        return self._metrics.collect()

    def snapshot(self) -> MetricValues:
        """Return every metric's value now, by name."""
        return MetricValues.of(self.collect())
