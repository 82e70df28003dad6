"""What a producer measures, under Java's names. Recorded per batch and per request, never per record."""

from __future__ import annotations

from collections.abc import Callable

from kclient.metrics import MetricName, Metrics
from kclient.producer.internals.producer_batch import ProducerBatch
from kclient.utils.time import Time


class ProducerMetrics:
    """The sensors of one producer. Thread-safe."""

    def __init__(self, time: Time, client_id: str, *, window_ms: int, samples: int) -> None:
        self._metrics = metrics = Metrics(
            time, "producer-metrics", {"client-id": client_id}, window_ms=window_ms, samples=samples
        )
        self._records = metrics.sensor(
            rate="record-send-rate", total="record-send-total", description="number of records sent"
        )
        self._bytes = metrics.sensor(
            rate="outgoing-byte-rate", total="outgoing-byte-total", description="bytes of batches sent"
        )
        self._record_size = metrics.sensor(avg="record-size-avg", description="size of a record")
        self._batch_size = metrics.sensor(
            avg="batch-size-avg", maximum="batch-size-max", description="bytes of a batch as it is sent"
        )
        self._compression = metrics.sensor(
            avg="compression-rate-avg",
            description="size of a batch when compressed, as a part of its size before",
        )
        self._queue_time = metrics.sensor(
            avg="record-queue-time-avg", maximum="record-queue-time-max", description="ms a batch was queued"
        )
        self._per_request = metrics.sensor(
            avg="records-per-request-avg", description="number of records in a request"
        )
        self._requests = metrics.sensor(
            rate="request-rate", total="request-total", description="number of produce requests sent"
        )
        self._latency = metrics.sensor(
            avg="request-latency-avg",
            maximum="request-latency-max",
            description="ms until a request was answered",
        )
        self._throttle = metrics.sensor(
            avg="produce-throttle-time-avg",
            maximum="produce-throttle-time-max",
            description="ms a request was throttled by a broker",
        )
        self._retries = metrics.sensor(
            rate="record-retry-rate", total="record-retry-total", description="number of records sent again"
        )
        self._errors = metrics.sensor(
            rate="record-error-rate", total="record-error-total", description="number of records that failed"
        )
        self._splits = metrics.sensor(
            rate="batch-split-rate", total="batch-split-total", description="number of batches split"
        )
        self.buffer_wait = metrics.sensor(
            total="bufferpool-wait-time-ms-total", description="ms that senders waited for buffer memory"
        )
        self.flush_time = metrics.sensor(total="flush-time-ms-total", description="ms spent in flush")
        self.metadata_wait = metrics.sensor(
            total="metadata-wait-time-ms-total", description="ms that senders waited for metadata"
        )

    def gauge(self, name: str, description: str, measure: Callable[[], float]) -> None:
        """A metric that is asked for when it is read."""
        self._metrics.gauge(name, description, measure)

    def request_sent(self, batches: list[ProducerBatch], now_ms: int) -> None:
        """A produce request with `batches` goes out."""
        records = sum(batch.builder.count for batch in batches)
        size = sum(batch.builder.size for batch in batches)
        self._requests.record()
        self._records.record(records)
        self._per_request.record(records)
        self._bytes.record(size)
        for batch in batches:
            builder = batch.builder
            self._batch_size.record(builder.size)
            self._record_size.record(builder.uncompressed_size, builder.count)
            self._compression.record(builder.size / builder.uncompressed_size)
            self._queue_time.record(now_ms - batch.queued_ms)

    def request_done(self, latency_ms: int, throttle_ms: int) -> None:
        """A produce request was answered."""
        self._latency.record(latency_ms)
        self._throttle.record(throttle_ms)

    def retried(self, batch: ProducerBatch) -> None:
        """A batch will be sent again."""
        self._retries.record(batch.builder.count)

    def failed(self, batch: ProducerBatch) -> None:
        """A batch was given up."""
        self._errors.record(batch.builder.count)

    def split(self) -> None:
        """A batch was split."""
        self._splits.record()

    def snapshot(self) -> dict[MetricName, float]:
        """Every metric's value now."""
        return self._metrics.snapshot()
