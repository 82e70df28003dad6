"""The metrics of a share consumer, under Java's names."""

from __future__ import annotations

from collections.abc import Iterable

from kclient.client.client_metrics import ClientMetrics
from kclient.consumer.internals.share.acknowledgements import Acknowledgements
from kclient.consumer.share_config import ShareConsumerConfig
from kclient.metrics import Avg, Max, Rate, RatePerHour, Total
from kclient.utils.time import Time


class ShareMetrics(ClientMetrics):
    """The sensors of one share consumer. Thread-safe. Recorded per fetch, poll and commit, never per record."""

    def __init__(self, config: ShareConsumerConfig, time: Time) -> None:
        super().__init__(config, time, "consumer-share-metrics")
        self._time = time
        of_polls = self._metrics
        self._between_polls = of_polls.sensor("time-between-poll", "ms between two calls of poll()", Avg, Max)
        self._idle = of_polls.sensor(
            "poll-idle-ratio", "part of the time that the application waits in poll()", Avg
        )
        of_polls.gauge(
            "last-poll-seconds-ago",
            "Seconds since the last call of poll(), -1 before the first",
            lambda: self._seconds_since(self._polled_ms),
        )
        fetches = of_polls.in_group("consumer-share-fetch-manager-metrics")
        self._fetches = fetches.sensor("fetch", "number of fetch requests", Rate, Total)
        self._latency = fetches.sensor("fetch-latency", "ms until a fetch was answered", Avg, Max)
        self._throttle = fetches.sensor(
            "fetch-throttle-time", "ms a fetch was throttled by a broker", Avg, Max
        )
        self._size = fetches.sensor("fetch-size", "bytes fetched by one request", Avg, Max)
        self._bytes = fetches.sensor("bytes-fetched", "bytes fetched", Rate, Total)
        self._per_request = fetches.sensor("records-per-request", "records of one poll()", Avg, Max)
        self._records = fetches.sensor("records-fetched", "records fetched", Rate, Total)
        self._sent = fetches.sensor("acknowledgements-send", "number of acknowledgements sent", Rate, Total)
        self._errors = fetches.sensor(
            "acknowledgements-error", "number of acknowledgements that failed", Rate, Total
        )
        group = of_polls.in_group("consumer-share-coordinator-metrics")
        self._heartbeats = group.sensor("heartbeat", "number of heartbeats", Rate, Total)
        self._heartbeat_time = group.sensor(
            "heartbeat-response-time", "ms until a heartbeat was answered", Max
        )
        self._rebalances = group.sensor("rebalance", "number of new assignments", RatePerHour, Total)
        group.gauge(
            "last-heartbeat-seconds-ago",
            "Seconds since the last heartbeat was sent, -1 before the first",
            lambda: self._seconds_since(self._heartbeat_ms),
        )
        self._polled_ms: int | None = None
        self._waited_ms = 0
        self._heartbeat_ms: int | None = None

    # The application's side.

    def polled(self, now_ms: int) -> None:
        """The application called poll()."""
        if self._polled_ms is not None:
            between_ms = now_ms - self._polled_ms
            self._between_polls.record(between_ms)
            self._idle.record(min(self._waited_ms / max(between_ms, 1), 1.0))
        self._waited_ms = 0
        self._polled_ms = now_ms

    def waited(self, time_ms: int) -> None:
        """A poll() had nothing to hand out for so long."""
        self._waited_ms += time_ms

    def consumed(self, count: int) -> None:
        """So many records were handed to the application."""
        self._records.record(count)
        self._per_request.record(count)

    # The I/O thread's side.

    def fetched(self, latency_ms: int, throttle_ms: int, sizes: Iterable[int]) -> None:
        """A fetch was answered, with so many bytes of its partitions."""
        self._fetches.record()
        self._latency.record(latency_ms)
        self._throttle.record(throttle_ms)
        size = sum(sizes)
        if size:
            self._size.record(size)
            self._bytes.record(size)

    def acknowledged(self, acknowledgements: Acknowledgements) -> None:
        """Acknowledgements have their outcome."""
        self._sent.record(acknowledgements.count)
        if acknowledgements.error is not None:
            self._errors.record(acknowledgements.count)

    def heartbeat_sent(self, now_ms: int) -> None:
        """A heartbeat is on its way."""
        self._heartbeat_ms = now_ms

    def heartbeat_answered(self, latency_ms: int) -> None:
        """The coordinator knows that the member is alive."""
        self._heartbeats.record()
        self._heartbeat_time.record(latency_ms)

    def assigned(self) -> None:
        """The coordinator has sent an assignment."""
        self._rebalances.record()

    def _seconds_since(self, then_ms: int | None) -> float:
        return -1 if then_ms is None else (self._time.monotonic_ms() - then_ms) / 1000
