"""RecordAccumulator: the batches between the threads that send and the one that does I/O."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import attrs

from kclient._accel.pure_batch_input import Column
from kclient.errors import ClientClosedError
from kclient.producer.internals.buffer_pool import BufferPool, Claim
from kclient.producer.internals.compression import Compressor
from kclient.producer.internals.entry import Entry
from kclient.producer.internals.idempotence.sequences import sequence_precedes
from kclient.producer.internals.incomplete import IncompleteBatches
from kclient.producer.internals.metadata import ProducerMetadata
from kclient.producer.internals.partition_queue import PartitionQueue, TopicQueues
from kclient.producer.internals.producer_batch import BatchState, ProducerBatch
from kclient.producer.internals.record_size import RecordSizes
from kclient.producer.internals.sticky import NodeAvailability, StickyPartition
from kclient.producer.internals.wakeup import SenderWakeup
from kclient.producer.types import record_metadata
from kclient.record import BatchBuilder, BatchResult
from kclient.utils.futures import KafkaFuture
from kclient.utils.time import Time, Timer

Contents: TypeAlias = list[bytes | None] | tuple[bytes | None, ...]

# No batch grows to more than this part of buffer.memory, nor beyond what gains nothing any more. Brokers rather suffer
# from more: half a region of a JVM's heap (512 KiB, up to 2 GiB of heap) is garbage of the expensive kind, and large
# writes ask their system for large pages.
_LARGEST_SHARE = 16
_LARGEST_GROWN_BYTES = 500_000


class RecordColumns(Protocol):
    """Records in columns, as `BatchBuilder.append_columns` takes them."""

    @property
    def timestamps(self) -> memoryview | None: ...
    @property
    def keys(self) -> Column | None: ...
    @property
    def values(self) -> Column | None: ...
    def row(self, number: int) -> tuple[int | None, bytes | None, bytes | None]:
        """Timestamp, key and value of one record."""


@attrs.frozen
class AccumulatorSettings:
    """The settings that decide how batches are made; sizes in bytes, times in ms."""

    batch_size: int
    linger_ms: int
    max_request_size: int
    max_block_ms: int
    adaptive_partitioning: bool
    adaptive_batching: bool


class RecordAccumulator:
    """Collects records in batches, per partition.

    `append` may be called by any thread; whatever says so belongs to the I/O thread. Of the locks in use the
    accumulator's is taken first, then a batch's, the buffer pool's or that of the incomplete batches. None is held
    while callbacks run.
    """

    def __init__(
        self,
        settings: AccumulatorSettings,
        *,
        metadata: ProducerMetadata,
        pool: BufferPool,
        compressor: Compressor,
        availability: NodeAvailability,
        wakeup: SenderWakeup,
        time: Time,
        log_prefix: str = "",
    ) -> None:
        self.settings = settings
        self._log_prefix = log_prefix
        self.pool = pool
        self.sizes = RecordSizes(settings.max_request_size, pool.total)
        self.compressor = compressor
        self.incomplete = IncompleteBatches(time)
        self.topics: dict[str, TopicQueues] = {}
        self.io_thread_id: int | None = None
        self._metadata = metadata
        self._availability = availability
        self._wakeup = wakeup
        self._time = time
        self._lock = threading.RLock()  # reentrant: see Entry
        self.entry = Entry(self._lock, pool, self.incomplete)
        # Queues that are not empty, in the order in which they are served: who was served goes to the end.
        self._active: dict[PartitionQueue, None] = {}
        self._flushes = 0
        self._closed = False

    def max_block_ms(self) -> int:
        """How long the calling thread may wait: a callback on the I/O thread would wait for itself."""
        return 0 if threading.get_ident() == self.io_thread_id else self.settings.max_block_ms

    # Adding records.

    def topic(self, name: str) -> TopicQueues:
        """The queues of a topic, made at first use."""
        topic = self.topics.get(name)
        if topic is None:
            sticky = StickyPartition(
                name, adaptive=self.settings.adaptive_partitioning, availability=self._availability
            )
            topic = self.topics.setdefault(name, TopicQueues(name, sticky))
        return topic

    def append(
        self,
        topic: TopicQueues,
        partition: int | None,
        timestamp_ms: int | None,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes | None]],
        callback: Any,
        timer: Timer | None = None,
    ) -> KafkaFuture[Any]:
        """Add a record, to the topic's present sticky partition if `partition` is None.

        Waits for buffer memory until `timer` (max.block.ms from now, if None) expires. Raises RecordTooLargeError,
        BufferExhaustedError, ClientClosedError, and IllegalStateError where it interrupts the producer.
        """
        queue = self._present_queue(topic, partition)
        builder = None if queue is None else queue.open
        if builder is not None:
            future: Any = builder.append(timestamp_ms, key, value, headers, callback)
            if future is not None:
                return future  # type: ignore[no-any-return]  # registered as a KafkaFuture
        size = self.sizes.check(topic.topic, key, value, headers)
        self.entry.check_send()
        claim = Claim()
        try:
            while True:
                with self._lock:
                    if self._closed:
                        raise ClientClosedError("The producer is closed.")
                    queue = self._sticky_queue(topic, size) if partition is None else topic.queue(partition)
                    builder = queue.open
                    if builder is not None:
                        future = builder.append(timestamp_ms, key, value, headers, callback)
                        if future is not None:
                            return future  # type: ignore[no-any-return]  # as above
                    growth = self._possible_growth(queue) if len(queue.batches) > 1 else 0
                    needed = growth or max(self._batch_limit(topic.topic), size)
                    if claim.held >= needed or (not claim.held and self.pool.try_allocate(claim, needed)):
                        if growth:
                            self._grow(queue.batches[-1], claim)
                            continue
                        batch, future = self._start_batch(
                            queue, claim, timestamp_ms, key, value, headers, callback
                        )
                        break
                if claim.held:
                    # What was waited for is too little by now: another batch is open, or compression got worse.
                    self.pool.give_back(claim)
                timer = timer or self._time.timer(self.max_block_ms())
                self.pool.allocate(claim, needed, timer)
        finally:
            if claim.held:
                self.pool.give_back(claim)
        self._announce(batch)
        return future  # type: ignore[no-any-return]  # as above

    def append_many(
        self,
        topic: TopicQueues,
        partition: int | None,
        keys: Contents | None,
        values: Contents,
        start: int,
        stop: int,
    ) -> tuple[BatchResult, int, int]:
        """Add one or more of the records `start` to `stop`: the result of their batch, the index there of the first,
        and how many they are.

        Where there is no room in an open batch this is `append` of a single record, and waits and raises as that.
        """
        builder = self._open_builder(topic, partition)
        if builder is not None:
            first, taken = builder.append_many(None, keys, values, start, stop)
            if taken:
                return builder.result, first, taken
        key = None if keys is None else keys[start]
        return self._append_single(topic, partition, None, key, values[start])

    def append_columns(
        self,
        topic: TopicQueues,
        partition: int | None,
        columns: RecordColumns,
        start: int,
        stop: int,
    ) -> tuple[BatchResult, int, int]:
        """As `append_many`, for records in columns."""
        builder = self._open_builder(topic, partition)
        if builder is not None:
            first, taken = builder.append_columns(
                columns.timestamps, columns.keys, columns.values, start, stop
            )
            if taken:
                return builder.result, first, taken
        return self._append_single(topic, partition, *columns.row(start))

    @staticmethod
    def _present_queue(topic: TopicQueues, partition: int | None) -> PartitionQueue | None:
        return topic.sticky_queue if partition is None else topic.queue(partition)

    def _open_builder(self, topic: TopicQueues, partition: int | None) -> BatchBuilder | None:
        queue = self._present_queue(topic, partition)
        return None if queue is None else queue.open

    def _append_single(
        self,
        topic: TopicQueues,
        partition: int | None,
        timestamp_ms: int | None,
        key: bytes | None,
        value: bytes | None,
    ) -> tuple[BatchResult, int, int]:
        future: Any = self.append(topic, partition, timestamp_ms, key, value, (), None)
        result, index = future.resolve()
        return result, index, 1

    def _batch_limit(self, topic: str) -> int:
        settings = self.settings
        return self.compressor.uncompressed_limit(topic, settings.batch_size, self.sizes.largest_batch)

    def _sticky_queue(self, topic: TopicQueues, size: int) -> PartitionQueue:
        """Where a record without a key goes that did not fit the open batch: on, once a batch's worth has been there.

        Partitions change only between batches, and by bytes, so that all get the same however records are grouped.
        """
        queue = topic.sticky_queue
        if (
            queue is not None
            and queue.tp.partition < topic.partition_count
            and self._turn_goes_on(topic, queue, size)
        ):
            return queue
        queues = topic.queues

        def backlog(partition: int) -> int:
            known = queues.get(partition)
            return 0 if known is None else len(known.batches)

        now_ms = self._time.monotonic_ms()
        queue = topic.queue(topic.sticky.next_partition(self._metadata.fetch(), backlog, now_ms))
        topic.sticky_start_bytes = queue.produced_bytes()
        topic.sticky_queue = queue
        return queue

    def _turn_goes_on(self, topic: TopicQueues, queue: PartitionQueue, size: int) -> bool:
        """Whether the sticky partition still has room in its turn for that many bytes."""
        return queue.produced_bytes() - topic.sticky_start_bytes + size <= self.settings.batch_size

    def _possible_growth(self, queue: PartitionQueue) -> int:
        """By how many bytes the full open batch, which is behind others that go first, may grow beyond batch.size.

        One large batch costs both sides far less than the queue of small ones that would form instead. Waiting for
        memory comes second, too: a full buffer must not be the reason why batches stay small.
        """
        builder = queue.open
        if builder is None or builder.closed:
            return 0
        if not queue.may_grow or not self.settings.adaptive_batching:
            return 0
        largest = min(self.settings.max_request_size, self.pool.total // _LARGEST_SHARE, _LARGEST_GROWN_BYTES)
        return max(min(builder.limit * 2, largest) - builder.limit, 0)

    def _grow(self, batch: ProducerBatch, claim: Claim) -> None:
        size = claim.held
        batch.charge += size
        claim.held = 0
        batch.builder.grow_limit(batch.builder.limit + size)

    def _start_batch(
        self,
        queue: PartitionQueue,
        claim: Claim,
        timestamp_ms: int | None,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes | None]],
        callback: Any,
    ) -> tuple[ProducerBatch, KafkaFuture[Any]]:
        tp = queue.tp
        now_ms = self._time.monotonic_ms()
        limit = self._batch_limit(tp.topic) if self.settings.batch_size else 0
        result = BatchResult(tp.topic, tp.partition, record_metadata, self._log_prefix)
        builder = BatchBuilder(tp.topic, tp.partition, limit, result, now_ms)
        # The first record always fits.
        future: Any = builder.append(timestamp_ms, key, value, headers, callback)
        batch = ProducerBatch(builder, queue, self.incomplete.next_number(), now_ms, claim.held, now_ms)
        if queue.open is not None:
            self._retire(queue, queue.open)
        try:
            queue.open = builder
            queue.batches.append(batch)
            self._active.setdefault(queue)
            self.incomplete.add(batch)
            claim.held = 0  # from here on the memory is the batch's
            return batch, future
        except BaseException:
            # A Ctrl-C: all of it or nothing.
            queue.open = None
            if queue.batches and queue.batches[-1] is batch:
                queue.batches.pop()
            if not queue.batches:
                self._active.pop(queue, None)
            self.incomplete.remove(batch)
            raise

    def _announce(self, batch: ProducerBatch) -> None:
        queue = batch.queue
        self._metadata.add_topic(queue.tp.topic, batch.created_ms)
        at_once = len(queue.batches) > 1 or self._flushes or batch.is_full
        leader = queue.leader(self._metadata.fetch())
        self._wakeup.batch_added(
            None if leader is None else leader.id,
            batch.created_ms if at_once else batch.created_ms + self.settings.linger_ms,
        )

    def _retire(self, queue: PartitionQueue, builder: BatchBuilder) -> None:
        """Nothing is appended to `builder` any more. The lock is held."""
        if queue.open is builder:
            queue.appended_bytes += builder.uncompressed_size
            queue.open = None

    # What the I/O thread does with the batches.

    def active_queues(self) -> list[PartitionQueue]:
        """The queues with batches, those that waited longest for their turn first."""
        if not self._active:
            return []
        with self._lock:
            return list(self._active)

    @property
    def must_send_all(self) -> bool:
        """Whether batches go out without lingering: someone flushes or waits for memory, or the end has come."""
        return self._flushes > 0 or self._closed or self.pool.waiting > 0

    def take(self, batch: ProducerBatch) -> None:
        """Take `batch`, which must be closed for appending, out of its queue. I/O thread."""
        queue = batch.queue
        with self._lock:
            queue.batches.remove(batch)
            self._retire(queue, batch.builder)
            self._active.pop(queue, None)
            if queue.batches:
                self._active[queue] = None

    def reenqueue(self, batch: ProducerBatch, now_ms: int, retry_at_ms: int) -> None:
        """Put `batch` back to be sent again from `retry_at_ms` on. I/O thread."""
        batch.transition_to(BatchState.QUEUED)
        batch.attempts += 1
        batch.queued_ms = now_ms
        batch.retry_at_ms = retry_at_ms
        self._put_back(batch)

    def _put_back(self, batch: ProducerBatch) -> None:
        queue = batch.queue
        with self._lock:
            at = 0
            if batch.has_sequence:
                # Several may come back in any order; they go out again in that of their sequences.
                for other in queue.batches:
                    if not other.has_sequence or sequence_precedes(batch.base_sequence, other.base_sequence):
                        break
                    at += 1
            queue.batches.insert(at, batch)
            self._active.setdefault(queue)

    def split(self, batch: ProducerBatch) -> list[ProducerBatch]:
        """Make smaller batches of one that the broker finds too large. They are not queued yet. I/O thread."""
        tp = batch.tp
        batch.queue.may_grow = False
        self.compressor.reset(tp.topic)
        # Half, at most: where the broker's limit is below batch.size, this gets there in a few steps.
        limit = min(max(self.settings.batch_size, 1), max(batch.builder.uncompressed_size // 2, 1))
        builders = batch.builder.split(
            limit, lambda: BatchResult(tp.topic, tp.partition, record_metadata, self._log_prefix)
        )
        batch.transition_to(BatchState.SPLIT)
        share, rest = divmod(batch.charge, len(builders))
        parts = [
            ProducerBatch(
                builder,
                batch.queue,
                batch.number,
                batch.created_ms,
                share + (rest if i == 0 else 0),
                batch.queued_ms,
                attempts=batch.attempts + 1,
            )
            for i, builder in enumerate(builders)
        ]
        self.incomplete.replace(batch, parts)
        # The parts hold the memory now.
        batch.charge = 0
        batch.builder.release()
        return parts

    def enqueue_parts(self, parts: list[ProducerBatch]) -> None:
        """Put the parts of a split batch in front of the queue, in order. I/O thread."""
        for part in reversed(parts):
            part.builder.body()  # nothing is appended to what is sent again
            self._put_back(part)

    def settled(self, batch: ProducerBatch) -> None:
        """The futures of `batch` have their outcome: who flushes need not wait for it. I/O thread."""
        self.incomplete.remove(batch)

    def release(self, batch: ProducerBatch) -> None:
        """No request carries `batch` any more: let go of its memory. I/O thread."""
        charge, batch.charge = batch.charge, 0
        batch.builder.release()
        if charge:
            self.pool.release(charge)

    def update_partition_counts(self) -> None:
        """Take over how many partitions the topics have now. I/O thread, or whoever waited for a topic."""
        cluster = self._metadata.fetch()
        for topic in list(self.topics.values()):
            topic.partition_count = cluster.partition_count(topic.topic) or 0
            queue = topic.sticky_queue
            if queue is not None and queue.tp.partition >= topic.partition_count:
                topic.sticky_queue = None

    # Flushing and closing.

    def begin_flush(self) -> None:
        """Let nothing linger until `end_flush`. Raises IllegalStateError where it interrupts the producer."""
        self.entry.check_wait()
        with self._lock:
            self._flushes += 1
        self._wakeup.wake()

    def end_flush(self) -> None:
        """Undo one `begin_flush`."""
        with self._lock:
            self._flushes -= 1

    def close(self) -> None:
        """Take no more records. What is there is sent without lingering."""
        with self._lock:
            self._closed = True
        self.pool.close()
