"""What a consumer measures, under Java's names. Recorded per fetch and per poll, never per record."""

from __future__ import annotations

from collections.abc import Callable

from kclient.metrics import MetricName, Metrics
from kclient.utils.time import Time


class ConsumerMetrics:
    """The sensors of one consumer. Thread-safe."""

    def __init__(self, time: Time, client_id: str, *, window_ms: int, samples: int) -> None:
        tags = {"client-id": client_id}
        self._fetch = fetch = Metrics(
            time, "consumer-fetch-manager-metrics", tags, window_ms=window_ms, samples=samples
        )
        self._group = group = Metrics(
            time, "consumer-coordinator-metrics", tags, window_ms=window_ms, samples=samples
        )
        self._consumer = consumer = Metrics(
            time, "consumer-metrics", tags, window_ms=window_ms, samples=samples
        )
        self._requests = fetch.sensor(
            rate="fetch-rate", total="fetch-total", description="number of fetch requests"
        )
        self._latency = fetch.sensor(
            avg="fetch-latency-avg", maximum="fetch-latency-max", description="ms until a fetch was answered"
        )
        self._throttle = fetch.sensor(
            avg="fetch-throttle-time-avg",
            maximum="fetch-throttle-time-max",
            description="ms a fetch was throttled by a broker",
        )
        self._bytes = fetch.sensor(
            rate="bytes-consumed-rate", total="bytes-consumed-total", description="bytes fetched"
        )
        self._size = fetch.sensor(
            avg="fetch-size-avg", maximum="fetch-size-max", description="bytes fetched of a partition"
        )
        self._records = fetch.sensor(
            rate="records-consumed-rate",
            total="records-consumed-total",
            description="number of records consumed",
        )
        self._commits = group.sensor(
            rate="commit-rate", total="commit-total", description="number of commits"
        )
        self._between_polls = consumer.sensor(
            avg="time-between-poll-avg",
            maximum="time-between-poll-max",
            description="ms between two calls of poll()",
        )
        self._polled_ms: int | None = None

    def fetched(self, latency_ms: int, throttle_ms: int) -> None:
        """A fetch was answered."""
        self._requests.record()
        self._latency.record(latency_ms)
        self._throttle.record(throttle_ms)

    def fetched_partition(self, size_bytes: int) -> None:
        """It had data of a partition."""
        self._bytes.record(size_bytes)
        self._size.record(size_bytes)

    def consumed(self, records: int) -> None:
        """Records were handed to the application."""
        self._records.record(records)

    def committed(self) -> None:
        """Offsets were committed."""
        self._commits.record()

    def polled(self, now_ms: int) -> None:
        """The application called poll()."""
        if self._polled_ms is not None:
            self._between_polls.record(now_ms - self._polled_ms)
        self._polled_ms = now_ms

    def watch_rebalances(self, count: Callable[[], float]) -> None:
        """Where the number of rebalances so far is found."""
        self._group.gauge("rebalance-total", "The total number of rebalances", count)

    def watch_assignment(self, assigned: Callable[[], float], max_lag: Callable[[], float]) -> None:
        """Where the number of assigned partitions and the largest lag are found."""
        self._group.gauge("assigned-partitions", "The number of partitions assigned", assigned)
        self._fetch.gauge("records-lag-max", "The largest lag of a partition, in records", max_lag)

    def snapshot(self) -> dict[MetricName, float]:
        """Every metric's value now."""
        return {**self._fetch.snapshot(), **self._group.snapshot(), **self._consumer.snapshot()}
