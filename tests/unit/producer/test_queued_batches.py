"""Batches between the accumulator and their requests: whose turn it is, what comes back, and the memory they hold."""

from __future__ import annotations

import random

import pytest

from harness.mock_time import MockTime
from kclient.common.topic_partition import TopicPartition
from kclient.compress.codec import CompressionType
from kclient.metrics import Sensor
from kclient.producer.internals.buffer_pool import BufferPool, Claim
from kclient.producer.internals.compression import Compressor
from kclient.producer.internals.partition_queue import PartitionQueue
from kclient.producer.internals.producer_batch import BatchState, ProducerBatch
from kclient.producer.internals.queued_batches import QueuedBatches
from kclient.record import BatchBuilder, iter_batches

TOTAL_BYTES = 100_000
LAST_SEQUENCE = 2**31 - 1


class Queued(QueuedBatches):
    """Queues of one topic."""

    def __init__(self, *, batch_size: int = 16_384, codec: CompressionType = CompressionType.NONE) -> None:
        pool = BufferPool(TOTAL_BYTES, Sensor(MockTime()), lambda: None)
        super().__init__(pool=pool, compressor=Compressor(codec, None), batch_size=batch_size, log_prefix="")
        self._queues: dict[int, PartitionQueue] = {}

    def queue(self, partition: int = 0) -> PartitionQueue:
        return self._queues.setdefault(partition, PartitionQueue(TopicPartition("t", partition)))

    def batch(
        self, *values: bytes, partition: int = 0, charge: int = 1000, sequence: int | None = None
    ) -> ProducerBatch:
        """Add a batch with `values` as an appending thread does, with the memory of `charge`."""
        queue = self.queue(partition)
        builder = BatchBuilder("t", partition, 50_000, self.new_result(queue.tp), 0)
        for value in values or (b"v",):
            assert builder.append(0, None, value, None) is not None
        claim = Claim()
        assert self.pool.try_allocate(claim, charge)
        with self.lock:
            made = self.add(builder, queue, claim, now_ms=5)
        if sequence is not None:
            made.stamp(7, 0, sequence)
        return made

    def sent(self, batch: ProducerBatch) -> ProducerBatch:
        """Take `batch` as the Drainer does."""
        body = batch.builder.freeze()
        compressed = self.compressor.compress("t", body)
        self.take(batch)
        batch.seal(self.compressor.attributes, compressed)
        batch.transition_to(BatchState.IN_FLIGHT)
        return batch

    def turns(self) -> list[int]:
        return [queue.tp.partition for queue in self.active_queues()]


def values_of(batch: ProducerBatch) -> list[bytes | None]:
    batch.seal(0, None)
    (sent,) = iter_batches(batch.wire_bytes())
    return [record.value for record in sent.records()]


def test_a_partition_gets_its_turn_with_its_first_batch_and_keeps_it_with_the_next() -> None:
    q = Queued()
    for partition in (1, 0, 1):
        q.batch(partition=partition)
    assert q.turns() == [1, 0]


def test_a_partition_that_was_served_goes_to_the_end_or_away_if_nothing_is_left() -> None:
    q = Queued()
    first = q.batch(partition=0)
    second = q.batch(partition=0)
    q.batch(partition=1)
    q.sent(first)
    assert q.turns() == [1, 0]
    q.sent(second)
    assert q.turns() == [1]


def test_a_new_batch_is_the_open_one_and_the_memory_is_its_own() -> None:
    q = Queued()
    before = q.batch(charge=300)
    claim = Claim()
    q.pool.try_allocate(claim, 200)
    builder = BatchBuilder("t", 0, 100, q.new_result(q.queue().tp), 0)
    batch = q.add(builder, q.queue(), claim, 9)
    assert q.queue().open is builder
    assert (batch.charge, claim.held) == (200, 0)
    assert (batch.created_ms, batch.queued_ms) == (9, 9)
    assert before.number < batch.number
    assert q.incomplete.snapshot() == [before, batch]


def test_an_interrupt_while_a_batch_is_added_leaves_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    q = Queued()
    claim = Claim()
    q.pool.try_allocate(claim, 200)
    builder = BatchBuilder("t", 0, 100, q.new_result(q.queue().tp), 0)

    def interrupted(self: object, batch: ProducerBatch) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(q.incomplete), "add", interrupted)
        with pytest.raises(KeyboardInterrupt):
            q.add(builder, q.queue(), claim, 0)
    assert (q.queue().open, list(q.queue().batches), q.turns()) == (None, [], [])
    assert claim.held == 200  # it is the caller's to give back


def test_nothing_is_appended_to_a_batch_that_was_taken() -> None:
    q = Queued()
    q.sent(q.batch(b"a"))
    assert q.queue().try_append(None, None, b"b", (), None) is None
    assert q.queue().produced_bytes() > 0


@pytest.mark.parametrize("why", ["flush", "close", "memory"])
def test_nothing_lingers_while_someone_flushes_or_waits_for_memory_or_after_the_end(why: str) -> None:
    q = Queued()
    assert not q.must_send_all
    if why == "flush":
        q.flushes = 1
    elif why == "close":
        q.closed = True
    else:
        claim = Claim()
        steps = q.pool.allocate(claim, TOTAL_BYTES, MockTime().timer(1000))
        assert q.pool.try_allocate(Claim(), 1)
        next(steps)
    assert q.must_send_all


class TestComingBack:
    def test_it_waits_from_now_on_for_its_time_before_what_is_younger(self) -> None:
        q = Queued()
        batch = q.sent(q.batch())
        younger = q.batch()
        q.reenqueue(batch, 100, 150)
        assert list(q.queue().batches) == [batch, younger]
        assert (batch.state, batch.attempts) == (BatchState.QUEUED, 1)
        assert (batch.created_ms, batch.queued_ms, batch.retry_at_ms) == (5, 100, 150)

    def test_its_partition_has_a_turn_again(self) -> None:
        q = Queued()
        batch = q.sent(q.batch(partition=0))
        q.batch(partition=1)
        q.reenqueue(batch, 100, 150)
        assert q.turns() == [1, 0]

    @pytest.mark.parametrize("first", [0, LAST_SEQUENCE - 1])
    @pytest.mark.parametrize("seed", range(4))
    def test_they_stand_in_the_order_of_their_sequences_whatever_the_order_of_the_answers(
        self, first: int, seed: int
    ) -> None:
        q = Queued()
        batches = [q.sent(q.batch(sequence=(first + number) & LAST_SEQUENCE)) for number in range(5)]
        unnumbered = q.batch()
        for batch in random.Random(seed).sample(batches, 5):
            q.reenqueue(batch, 0, 0)
        assert list(q.queue().batches) == [*batches, unnumbered]


class TestSplitting:
    def test_the_parts_have_all_records_in_order_each_within_batch_size(self) -> None:
        q = Queued(batch_size=200)
        values = [b"%d" % number * 50 for number in range(10)]
        whole = q.sent(q.batch(*values))
        parts = q.split(whole)
        assert all(part.builder.size <= 200 for part in parts)
        q.enqueue_parts(parts)
        assert list(q.queue().batches) == parts
        assert [value for part in parts for value in values_of(part)] == values

    def test_where_batch_size_is_no_help_the_parts_are_half_as_large(self) -> None:
        q = Queued(batch_size=16_384)
        whole = q.sent(q.batch(*[b"x" * 100] * 8))
        size = whole.builder.uncompressed_size
        parts = q.split(whole)
        assert len(parts) > 1
        assert all(part.builder.size <= size // 2 for part in parts)

    def test_the_parts_share_the_memory_of_the_whole_to_the_byte(self) -> None:
        q = Queued()
        whole = q.sent(q.batch(b"a" * 100, b"b" * 100, b"c" * 100, charge=1000))
        parts = q.split(whole)
        assert len(parts) == 3
        assert [part.charge for part in parts] == [334, 333, 333]
        q.release(whole)
        assert q.pool.available == TOTAL_BYTES - 1000
        for part in parts:
            q.release(part)
        assert q.pool.available == TOTAL_BYTES

    def test_the_parts_are_as_old_as_the_whole_and_stand_in_its_place_for_those_who_flush(self) -> None:
        q = Queued()
        whole = q.sent(q.batch(b"a" * 100, b"b" * 100))
        younger = q.batch()
        parts = q.split(whole)
        assert whole.state is BatchState.SPLIT
        assert q.incomplete.snapshot() == [*parts, younger]
        assert {(part.number, part.created_ms) for part in parts} == {(whole.number, whole.created_ms)}
        assert {part.attempts for part in parts} == {1}

    def test_the_parts_go_before_what_is_younger_and_take_no_more_records(self) -> None:
        q = Queued()
        whole = q.sent(q.batch(b"a" * 100, b"b" * 100))
        younger = q.batch()
        parts = q.split(whole)
        assert list(q.queue().batches) == [younger]
        q.enqueue_parts(parts)
        assert list(q.queue().batches) == [*parts, younger]
        assert all(part.builder.append(0, None, b"", None) is None for part in parts)

    def test_after_it_nothing_is_expected_of_compression_and_batches_grow_no_more(self) -> None:
        q = Queued(codec=CompressionType.GZIP)
        for _ in range(20):
            q.compressor.compress("t", memoryview(b"x" * 1000))
        whole = q.sent(q.batch(b"a" * 500, b"b" * 500))
        assert q.compressor.ratio("t") < 1
        q.split(whole)
        assert q.compressor.ratio("t") == 1
        assert not q.queue().may_grow


def test_memory_is_given_back_once() -> None:
    q = Queued()
    batch = q.sent(q.batch(charge=700))
    q.batch(charge=100)
    for _ in range(2):
        q.release(batch)
        assert q.pool.available == TOTAL_BYTES - 100
