"""ProducerBatch: which moves its state allows, its place among sequences, and what futures are told."""

from __future__ import annotations

import itertools

import pytest

from kclient.common.topic_partition import TopicPartition
from kclient.errors import IllegalStateError
from kclient.producer.internals.partition_queue import PartitionQueue
from kclient.producer.internals.producer_batch import BatchState, ProducerBatch
from kclient.producer.types import record_metadata
from kclient.record import BatchBuilder, BatchResult, iter_batches

TP = TopicPartition("t", 2)
S = BatchState
ENDS = {S.SUCCEEDED, S.FAILED, S.SPLIT}


def batch(*values: bytes, limit: int = 10_000) -> ProducerBatch:
    builder = BatchBuilder(
        TP.topic, TP.partition, limit, BatchResult(TP.topic, TP.partition, record_metadata), 0
    )
    for value in values or (b"v",):
        assert builder.append(0, None, value, None) is not None
    return ProducerBatch(builder, PartitionQueue(TP), number=0, created_ms=0, charge=0, queued_ms=0)


def test_only_the_moves_of_a_batchs_life_are_allowed() -> None:
    allowed = {
        (S.QUEUED, S.IN_FLIGHT),
        (S.QUEUED, S.SUCCEEDED),
        (S.QUEUED, S.FAILED),
        (S.IN_FLIGHT, S.QUEUED),
        (S.IN_FLIGHT, S.SUCCEEDED),
        (S.IN_FLIGHT, S.FAILED),
        (S.IN_FLIGHT, S.ABANDONED),
        (S.IN_FLIGHT, S.SPLIT),
        (S.ABANDONED, S.FAILED),
    }
    for before, after in itertools.product(S, S):
        made = batch()
        made.state = before
        if (before, after) in allowed:
            made.transition_to(after)
            assert made.state is after
        else:
            with pytest.raises(IllegalStateError, match=f"t-2 cannot go from {before.name} to {after.name}"):
                made.transition_to(after)
            assert made.state is before


@pytest.mark.parametrize("state", S)
def test_a_batch_is_done_unless_it_waits_or_is_on_its_way(state: BatchState) -> None:
    made = batch()
    made.state = state
    assert made.done is (state in ENDS or state is S.ABANDONED)


def test_it_has_no_sequence_until_it_is_stamped_and_its_last_one_wraps() -> None:
    made = batch(b"a", b"b", b"c")
    assert not made.has_sequence
    made.stamp(7, 1, 0)
    assert (made.has_sequence, made.last_sequence) == (True, 2)
    made.stamp(7, 1, 2**31 - 2)
    assert made.last_sequence == 0


def test_a_stamp_is_in_the_bytes_before_the_batch_is_sealed_and_after() -> None:
    made = batch()
    made.stamp(7, 1, 5)
    made.seal(0, None)
    made.stamp(8, 2, 0)
    (sent,) = iter_batches(made.wire_bytes())
    sent.ensure_valid()
    assert (sent.producer_id, sent.producer_epoch, sent.base_sequence) == (8, 2, 0)


def test_a_batch_is_full_when_nothing_more_fits_or_may_be_appended() -> None:
    assert not batch().is_full
    made = batch(b"x" * 500, limit=100)
    assert made.is_full
    sealed = batch()
    sealed.seal(0, None)
    assert sealed.is_full


def test_success_tells_each_record_its_offset() -> None:
    made = batch()
    future = made.builder.append(0, None, b"w", None)
    made.seal(0, None)
    made.transition_to(S.IN_FLIGHT)
    made.succeed(40, -1)
    assert future is not None
    assert future.result(0).offset == 41


@pytest.mark.parametrize(("still_carried", "state"), [(False, S.FAILED), (True, S.ABANDONED)])
def test_a_failure_is_told_once_and_says_if_the_bytes_are_still_on_their_way(
    still_carried: bool, state: BatchState
) -> None:
    made = batch()
    future = made.builder.append(0, None, b"w", None)
    made.seal(0, None)
    made.transition_to(S.IN_FLIGHT)
    error = RuntimeError("lost")
    made.fail(error, still_carried=still_carried)
    assert made.state is state
    assert future is not None
    assert future.exception(0) is error
    with pytest.raises(IllegalStateError):
        made.succeed(0, -1)
    assert future.exception(0) is error


def test_records_may_fail_each_in_its_own_way() -> None:
    made = batch()
    future = made.builder.append(0, None, b"w", None)
    made.seal(0, None)
    made.fail(RuntimeError("all"), lambda index: RuntimeError(f"record {index}"))
    assert future is not None
    assert str(future.exception(0)) == "record 1"
