"""The metrics of a producer, under Java's names. Recorded per batch and per request, never per record."""

from __future__ import annotations

import threading

import attrs

from kclient.client.client_metrics import ClientMetrics
from kclient.client.kafka_client import KafkaClient
from kclient.metrics import Avg, Max, Rate, Ratio, Total
from kclient.producer.config import ProducerConfig
from kclient.producer.internals.buffer_pool import BufferPool
from kclient.producer.internals.metadata import ProducerMetadata
from kclient.producer.internals.producer_batch import ProducerBatch
from kclient.producer.internals.topic_metrics import TopicMetrics, TopicSeen
from kclient.utils.time import NS_PER_MS, Time

# Ten sensors for every request would cost more than the request: they are told once in a while, and when asked.
_FOLD_MS = 1000


@attrs.define
class _Seen:
    """Sums and largest values over some requests."""

    requests: int = 0
    batches: int = 0
    records: int = 0
    bytes: int = 0
    uncompressed: int = 0
    compression: float = 0.0
    queued_ms: int = 0
    largest_batch: int = 0
    longest_queued_ms: int = 0
    answers: int = 0
    latency_ms: int = 0
    longest_latency_ms: int = 0
    throttle_ms: int = 0
    longest_throttle_ms: int = 0
    topics: dict[str, TopicSeen] = attrs.field(factory=dict)


_TRANSACTION_CALLS = {
    "init": "init_transactions",
    "begin": "begin_transaction",
    "send-offsets": "send_offsets_to_transaction",
    "commit": "commit_transaction",
    "abort": "abort_transaction",
}


class _NsRatio(Ratio):
    """The part of the time that something took, of which nanoseconds are recorded."""

    __slots__ = ()

    def measure(self, now_ms: int) -> float:
        return super().measure(now_ms) / (1000 * NS_PER_MS)


class ProducerMetrics(ClientMetrics):
    """The sensors of one producer. Thread-safe."""

    def __init__(self, config: ProducerConfig, time: Time) -> None:
        super().__init__(config, time, "producer-metrics")
        # Reentrant: a signal handler or a __del__ that interrupts its holder may need it.
        self._lock = threading.RLock()
        self._seen = _Seen()
        self._pool: BufferPool | None = None
        self._folded_ms = 0
        self._time = time
        self._told_exhausted = 0
        metrics = self._metrics
        self._records = metrics.sensor("record-send", "number of records sent", Rate, Total)
        self._record_size = metrics.sensor("record-size", "size of a record", Avg)
        self._batch_size = metrics.sensor("batch-size", "bytes of a batch as it is sent", Avg, Max)
        self._compression = metrics.sensor(
            "compression-rate", "size of a batch when compressed, as a part of its size before", Avg
        )
        self._queue_time = metrics.sensor("record-queue-time", "ms a batch was queued", Avg, Max)
        self._per_request = metrics.sensor("records-per-request", "number of records in a request", Avg)
        self._latency = metrics.sensor("request-latency", "ms until a request was answered", Avg, Max)
        self._throttle = metrics.sensor(
            "produce-throttle-time", "ms a request was throttled by a broker", Avg, Max
        )
        self._retries = metrics.sensor("record-retry", "number of records sent again", Rate, Total)
        self._errors = metrics.sensor("record-error", "number of records that failed", Rate, Total)
        self._splits = metrics.sensor("batch-split", "number of batches split", Rate, Total)
        self._topics = TopicMetrics(metrics, config.metadata_max_idle_ms)
        self._exhausted = metrics.sensor(
            "buffer-exhausted", "number of records that got no buffer memory in time", Rate, Total
        )
        # In nanoseconds, as their names say; the clock tells milliseconds.
        self.buffer_wait = metrics.sensor(
            "bufferpool-wait-time-ns", "ns that senders waited for buffer memory", Total
        )
        self.buffer_wait.add(
            metrics.name(
                "bufferpool-wait-ratio", "The part of the time that senders waited for buffer memory"
            ),
            _NsRatio(config.metrics_sample_window_ms, config.metrics_num_samples),
        )
        self.flush_time = metrics.sensor("flush-time-ns", "ns spent in flush", Total)
        self.transaction_times = {
            name: metrics.sensor(f"txn-{name}-time-ns", f"ns spent in {call}()", Total)
            for name, call in _TRANSACTION_CALLS.items()
        }
        """The time in the calls of transactions, by what they do."""
        self.metadata_wait = metrics.sensor(
            "metadata-wait-time-ns", "ns that senders waited for metadata", Total
        )

    def watch(self, pool: BufferPool, client: KafkaClient, metadata: ProducerMetadata) -> None:
        """Ask the pool, the client and the metadata for their figures when they are read."""
        self._pool = pool
        gauge = self._metrics.gauge
        gauge("buffer-total-bytes", "buffer.memory", lambda: pool.total)
        gauge("buffer-available-bytes", "Bytes of buffer.memory that are free", lambda: pool.available)
        gauge("waiting-threads", "Threads that wait for buffer memory", lambda: pool.waiting)
        gauge("requests-in-flight", "Requests without an answer", client.in_flight_count)
        gauge("metadata-age", "Seconds since the metadata was fetched", lambda: self._age_s(metadata))

    def _age_s(self, metadata: ProducerMetadata) -> float:
        age_ms = metadata.age_ms(self._time.monotonic_ms())
        return float("nan") if age_ms is None else age_ms / 1000

    def request_sent(self, batches: list[ProducerBatch], now_ms: int) -> None:
        """A produce request with `batches` goes out."""
        self._maybe_fold(now_ms)
        with self._lock:
            seen = self._seen
            seen.requests += 1
            for batch in batches:
                builder = batch.builder
                size = builder.size
                uncompressed = builder.uncompressed_size
                queued_ms = now_ms - batch.queued_ms
                seen.batches += 1
                seen.records += builder.count
                seen.bytes += size
                seen.uncompressed += uncompressed
                seen.compression += size / uncompressed
                seen.queued_ms += queued_ms
                seen.largest_batch = max(seen.largest_batch, size)
                seen.longest_queued_ms = max(seen.longest_queued_ms, queued_ms)
                topic = seen.topics.get(batch.tp.topic)
                if topic is None:
                    topic = seen.topics[batch.tp.topic] = TopicSeen()
                topic.batches += 1
                topic.records += builder.count
                topic.bytes += size
                topic.compression += size / uncompressed

    def answered(self, latency_ms: int, throttle_ms: int) -> None:
        """A produce request was answered."""
        with self._lock:
            seen = self._seen
            seen.answers += 1
            seen.latency_ms += latency_ms
            seen.throttle_ms += throttle_ms
            seen.longest_latency_ms = max(seen.longest_latency_ms, latency_ms)
            seen.longest_throttle_ms = max(seen.longest_throttle_ms, throttle_ms)

    def _maybe_fold(self, now_ms: int) -> None:
        if now_ms - self._folded_ms >= _FOLD_MS:
            self._folded_ms = now_ms
            self._fold()
            with self._lock:
                self._topics.remove_idle(now_ms)

    def _fold(self) -> None:
        """Hand what was seen since the last time to the sensors."""
        with self._lock:
            seen, self._seen = self._seen, _Seen()
            now_ms = self._time.monotonic_ms()
            for topic, each in seen.topics.items():
                self._topics.sent(topic, each, now_ms)
            if self._pool is not None and self._pool.exhausted != self._told_exhausted:
                self._exhausted.record(self._pool.exhausted - self._told_exhausted)
                self._told_exhausted = self._pool.exhausted
        if seen.requests:
            self._records.record(seen.records)
            self._per_request.record(seen.records, seen.requests)
        if seen.batches:
            self._batch_size.record(seen.bytes, seen.batches, seen.largest_batch)
            self._record_size.record(seen.uncompressed, seen.records)
            self._compression.record(seen.compression, seen.batches)
            self._queue_time.record(seen.queued_ms, seen.batches, seen.longest_queued_ms)
        if seen.answers:
            self._latency.record(seen.latency_ms, seen.answers, seen.longest_latency_ms)
            self._throttle.record(seen.throttle_ms, seen.answers, seen.longest_throttle_ms)

    def retried(self, batch: ProducerBatch) -> None:
        """A batch will be sent again."""
        self._retries.record(batch.builder.count)
        with self._lock:
            self._topics.retried(batch.tp.topic, batch.builder.count, self._time.monotonic_ms())

    def failed(self, batch: ProducerBatch) -> None:
        """A batch was given up."""
        self._errors.record(batch.builder.count)
        with self._lock:
            self._topics.failed(batch.tp.topic, batch.builder.count, self._time.monotonic_ms())

    def split(self) -> None:
        """A batch was split."""
        self._splits.record()

    def _catch_up(self) -> None:
        self._fold()
