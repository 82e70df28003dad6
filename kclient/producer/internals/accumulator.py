"""RecordAccumulator: from records to batches, on the threads that send."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import attrs

from kclient.errors import ClientClosedError
from kclient.producer.config import ProducerConfig
from kclient.producer.internals.buffer_pool import BufferPool, Claim
from kclient.producer.internals.entry import Entry
from kclient.producer.internals.metadata import ProducerMetadata
from kclient.producer.internals.partition_queue import (
    Added,
    ColumnsToAppend,
    Contents,
    PartitionQueue,
    TopicQueues,
)
from kclient.producer.internals.producer_batch import ProducerBatch
from kclient.producer.internals.queued_batches import QueuedBatches
from kclient.producer.internals.record_size import RecordSizes
from kclient.producer.internals.sticky import NodeAvailability, StickyPartition
from kclient.producer.internals.wakeup import SenderWakeup
from kclient.record import BatchBuilder
from kclient.serialization import AdaptedSerializer
from kclient.utils.futures import KafkaFuture
from kclient.utils.steps import Steps
from kclient.utils.time import Time, Timer

# No batch grows to more than this part of buffer.memory, nor beyond what gains nothing any more. Brokers rather suffer
# from more: half a region of a JVM's heap (512 KiB, up to 2 GiB of heap) is garbage of the expensive kind, and large
# writes ask their system for large pages.
_LARGEST_SHARE = 16
_LARGEST_GROWN_BYTES = 500_000


@attrs.define(kw_only=True, eq=False, repr=False)
class RecordAccumulator:
    """Collects records in batches, per partition. Thread-safe.

    What becomes of the batches is the affair of `queued`, which belongs to the I/O thread. Of the locks in use the one
    they share is taken first, then a batch's, the buffer pool's or that of the incomplete batches. None is held while
    callbacks run.
    """

    _config: ProducerConfig
    queued: QueuedBatches
    _metadata: ProducerMetadata
    _availability: NodeAvailability
    _wakeup: SenderWakeup
    _key_serializer: AdaptedSerializer
    _value_serializer: AdaptedSerializer
    _time: Time
    pool: BufferPool = attrs.field(init=False)
    sizes: RecordSizes = attrs.field(init=False)
    topics: dict[str, TopicQueues] = attrs.field(factory=dict, init=False)
    io_thread_id: int | None = attrs.field(default=None, init=False)
    _lock: threading.RLock = attrs.field(init=False)
    entry: Entry = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.pool = self.queued.pool
        self._lock = self.queued.lock
        self.sizes = RecordSizes(self._config.max_request_size, self.pool.total)
        self.entry = Entry(self._lock, self.pool, self.queued.incomplete)

    def max_block_ms(self) -> int:
        """The time the calling thread may wait: 0 for a callback on the I/O thread, which would wait for itself."""
        return 0 if threading.get_ident() == self.io_thread_id else self._config.max_block_ms

    # Adding records.

    def topic(self, name: str) -> TopicQueues:
        """The queues of a topic, made at first use."""
        topic = self.topics.get(name)
        if topic is None:
            config = self._config
            sticky = StickyPartition(
                name,
                adaptive=config.partitioner_adaptive_partitioning_enable,
                availability=self._availability,
            )
            queues = TopicQueues(
                name, config.partitioner_ignore_keys, self._key_serializer, self._value_serializer, sticky
            )
            topic = self.topics.setdefault(name, queues)
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
    ) -> Steps[KafkaFuture[Any]]:
        """Add a record for which there may be no room in an open batch (see `TopicQueues.try_append`).

        It goes to the topic's sticky partition if `partition` is None. Waits for buffer memory until `timer`
        (max.block.ms from now, if None) expires. Raises RecordTooLargeError, BufferExhaustedError, ClientClosedError,
        and IllegalStateError where it interrupts the producer.
        """
        size = self.sizes.check(topic.topic, key, value, headers)
        self.entry.check_send()
        claim = Claim()
        try:
            while True:
                with self._lock:
                    if self.queued.closed:
                        raise ClientClosedError("The producer is closed.")
                    queue = self._sticky_queue(topic, size) if partition is None else topic.queue(partition)
                    future = queue.try_append(timestamp_ms, key, value, headers, callback)
                    if future is not None:
                        return future
                    growth = self._possible_growth(queue) if len(queue.batches) > 1 else 0
                    needed = growth or max(self._batch_limit(topic.topic), size)
                    if claim.held >= needed or (not claim.held and self.pool.try_allocate(claim, needed)):
                        if growth:
                            self._grow(queue.batches[-1], claim)
                            continue
                        batch, first = self._start_batch(
                            queue, claim, timestamp_ms, key, value, headers, callback
                        )
                        break
                if claim.held:
                    # What was waited for is too little by now: another batch is open, or compression got worse.
                    self.pool.give_back(claim)
                timer = timer or self._time.timer(self.max_block_ms())
                yield from self.pool.allocate(claim, needed, timer)
        finally:
            if claim.held:
                self.pool.give_back(claim)
        self._announce(batch)
        return first

    def append_many(
        self,
        topic: TopicQueues,
        partition: int | None,
        keys: Contents | None,
        values: Contents,
        start: int,
        stop: int,
    ) -> Steps[Added]:
        """Add one or more of the records `start` to `stop`: the result of their batch, the index there of the first,
        and how many they are.

        Where there is no room in an open batch this is `append` of a single record, and waits and raises as that.
        """
        queue = self._present_queue(topic, partition)
        if queue is not None:
            added = queue.try_append_many(keys, values, start, stop)
            if added is not None:
                return added
        key = None if keys is None else keys[start]
        return (yield from self._append_single(topic, partition, None, key, values[start]))

    def append_columns(
        self,
        topic: TopicQueues,
        partition: int | None,
        columns: ColumnsToAppend,
        start: int,
        stop: int,
    ) -> Steps[Added]:
        """As `append_many`, for records in columns."""
        queue = self._present_queue(topic, partition)
        if queue is not None:
            added = queue.try_append_columns(columns, start, stop)
            if added is not None:
                return added
        return (yield from self._append_single(topic, partition, *columns.row(start)))

    @staticmethod
    def _present_queue(topic: TopicQueues, partition: int | None) -> PartitionQueue | None:
        return topic.sticky_queue if partition is None else topic.queue(partition)

    def _append_single(
        self,
        topic: TopicQueues,
        partition: int | None,
        timestamp_ms: int | None,
        key: bytes | None,
        value: bytes | None,
    ) -> Steps[Added]:
        future: Any = yield from self.append(topic, partition, timestamp_ms, key, value, (), None)
        result, index = future.resolve()
        return result, index, 1

    def _batch_limit(self, topic: str) -> int:
        return self.queued.compressor.uncompressed_limit(
            topic, self._config.batch_size, self.sizes.largest_batch
        )

    def _sticky_queue(self, topic: TopicQueues, size: int) -> PartitionQueue:
        """The queue for a record without a key that did not fit the open batch; it changes after a batch's worth.

        Partitions change only between batches, and by bytes, so that all get the same however records are grouped.
        """
        queue: PartitionQueue | None = topic.sticky_queue
        if (
            queue is not None
            and queue.tp.partition < topic.partition_count
            and queue.produced_bytes() - topic.sticky_start_bytes + size <= self._config.batch_size
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

    def _possible_growth(self, queue: PartitionQueue) -> int:
        """By how many bytes the full open batch, which is behind others that go first, may grow beyond batch.size.

        One large batch costs both sides far less than the queue of small ones that would form instead. Waiting for
        memory comes second, too: a full buffer must not be the reason why batches stay small.
        """
        builder = queue.open
        if builder is None or builder.closed:
            return 0
        if not queue.may_grow or not self._config.kclient_adaptive_batching:
            return 0
        largest = min(self._config.max_request_size, self.pool.total // _LARGEST_SHARE, _LARGEST_GROWN_BYTES)
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
        limit = self._batch_limit(tp.topic) if self._config.batch_size else 0
        builder = BatchBuilder(tp.topic, tp.partition, limit, self.queued.new_result(tp), now_ms)
        future = builder.append(timestamp_ms, key, value, headers, callback)
        assert future is not None, "the first record always fits"
        return self.queued.add(builder, queue, claim, now_ms), future

    def _announce(self, batch: ProducerBatch) -> None:
        queue = batch.queue
        self._metadata.add_topic(queue.tp.topic, batch.created_ms)
        at_once = len(queue.batches) > 1 or self.queued.flushes or batch.is_full
        leader = queue.leader(self._metadata.fetch())
        self._wakeup.batch_added(
            None if leader is None else leader.id,
            batch.created_ms if at_once else batch.created_ms + self._config.linger_ms,
        )

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
            self.queued.flushes += 1
        self._wakeup.wake()

    def end_flush(self) -> None:
        """Undo one `begin_flush`."""
        with self._lock:
            self.queued.flushes -= 1

    def close(self) -> None:
        """Take no more records. What is there is sent without lingering."""
        with self._lock:
            self.queued.closed = True
        self.pool.close()
