"""QueuedBatches: the batches that wait or are under way, as the I/O thread deals with them."""

from __future__ import annotations

import threading

import attrs

from kclient.common.topic_partition import TopicPartition
from kclient.producer.internals.buffer_pool import BufferPool, Claim
from kclient.producer.internals.compression import Compressor
from kclient.producer.internals.idempotence.sequences import sequence_precedes
from kclient.producer.internals.incomplete import IncompleteBatches
from kclient.producer.internals.partition_queue import PartitionQueue
from kclient.producer.internals.producer_batch import BatchState, ProducerBatch
from kclient.producer.types import record_metadata
from kclient.record import BatchBuilder, BatchResult


@attrs.define(kw_only=True, eq=False, repr=False)
class QueuedBatches:
    """The I/O thread's side of the accumulator: batches are taken, put back, split and let go of here.

    Only that thread may call its methods, but for `add` and `new_result`. `lock` is held while queues change; the
    accumulator sets `flushes` and `closed` under it.
    """

    pool: BufferPool
    compressor: Compressor
    _batch_size: int
    _log_prefix: str
    incomplete: IncompleteBatches = attrs.field(factory=IncompleteBatches, init=False)
    lock: threading.RLock = attrs.field(factory=threading.RLock, init=False)  # reentrant: see Entry
    flushes: int = attrs.field(default=0, init=False)
    """The number of threads that flush."""
    closed: bool = attrs.field(default=False, init=False)
    """True once no more records are taken."""
    # Queues that are not empty, in the order in which they are served: who was served goes to the end.
    _active: dict[PartitionQueue, None] = attrs.field(factory=dict, init=False)

    def new_result(self, tp: TopicPartition) -> BatchResult:
        """Return a result for a new batch of `tp`. Any thread."""
        return BatchResult(tp.topic, tp.partition, record_metadata, self._log_prefix)

    def add(self, builder: BatchBuilder, queue: PartitionQueue, claim: Claim, now_ms: int) -> ProducerBatch:
        """Make `builder`, which has its first record, the open batch of `queue`, with the memory of `claim`.

        Any thread that holds the lock.
        """
        batch = ProducerBatch(builder, queue, self.incomplete.next_number(), now_ms, claim.held, now_ms)
        if queue.open is not None:
            queue.retire(queue.open)
        try:
            queue.open = builder
            queue.batches.append(batch)
            self._active.setdefault(queue)
            self.incomplete.add(batch)
            claim.held = 0  # from here on the memory is the batch's
            return batch
        except BaseException:
            # A Ctrl-C: all of it or nothing.
            queue.open = None
            if queue.batches and queue.batches[-1] is batch:
                queue.batches.pop()
            if not queue.batches:
                self._active.pop(queue, None)
            self.incomplete.remove(batch)
            raise

    def active_queues(self) -> list[PartitionQueue]:
        """The queues with batches, those that waited longest for their turn first."""
        if not self._active:
            return []
        with self.lock:
            return list(self._active)

    @property
    def must_send_all(self) -> bool:
        """True if batches go out without lingering: someone flushes or waits for memory, or the end has come."""
        return self.flushes > 0 or self.closed or self.pool.waiting > 0

    def take(self, batch: ProducerBatch) -> None:
        """Take `batch`, which must be closed for appending, out of its queue."""
        queue = batch.queue
        with self.lock:
            queue.batches.remove(batch)
            queue.retire(batch.builder)
            self._active.pop(queue, None)
            if queue.batches:
                self._active[queue] = None

    def reenqueue(self, batch: ProducerBatch, now_ms: int, retry_at_ms: int) -> None:
        """Put `batch` back to be sent again from `retry_at_ms` on."""
        batch.transition_to(BatchState.QUEUED)
        batch.attempts += 1
        batch.queued_ms = now_ms
        batch.retry_at_ms = retry_at_ms
        self._put_back(batch)

    def _put_back(self, batch: ProducerBatch) -> None:
        queue = batch.queue
        with self.lock:
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
        """Make smaller batches of one that the broker finds too large. They are not queued yet."""
        tp = batch.tp
        batch.queue.may_grow = False
        self.compressor.reset(tp.topic)
        # Half, at most: where the broker's limit is below batch.size, this gets there in a few steps.
        limit = min(max(self._batch_size, 1), max(batch.builder.uncompressed_size // 2, 1))
        builders = batch.builder.split(limit, lambda: self.new_result(tp))
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
        """Put the parts of a split batch in front of the queue, in order."""
        for part in reversed(parts):
            part.builder.freeze()  # nothing is appended to what is sent again
            self._put_back(part)

    def release(self, batch: ProducerBatch) -> None:
        """No request carries `batch` any more: let go of its memory."""
        charge, batch.charge = batch.charge, 0
        batch.builder.release()
        if charge:
            self.pool.release(charge)
