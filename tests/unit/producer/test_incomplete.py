"""IncompleteBatches: the oldest one, parts in place of a whole, and who waits for which batches."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from harness.mock_time import MockTime
from kclient.common.topic_partition import TopicPartition
from kclient.producer.internals.incomplete import IncompleteBatches
from kclient.producer.internals.partition_queue import PartitionQueue
from kclient.producer.internals.producer_batch import ProducerBatch
from kclient.record import BatchBuilder, BatchResult
from kclient.utils.steps import Pause
from kclient.utils.time import Timer


def batch(number: int, records: int = 1) -> ProducerBatch:
    builder = BatchBuilder("t", 0, 10_000, BatchResult("t", 0), 0)
    for _ in range(records):
        builder.append(0, None, b"v", None)
    queue = PartitionQueue(TopicPartition("t", 0))
    return ProducerBatch(builder, queue, number=number, created_ms=0, charge=0, queued_ms=0)


def filled(*records: int) -> tuple[IncompleteBatches, list[ProducerBatch]]:
    incomplete = IncompleteBatches()
    made = [batch(incomplete.next_number(), count) for count in records]
    for each in made:
        incomplete.add(each)
    return incomplete, made


def wait(incomplete: IncompleteBatches, timer: Timer | None = None) -> Generator[Pause, Any, bool]:
    return incomplete.await_all_until_now(timer)


def outcome(steps: Generator[Pause, Any, bool]) -> bool | None:
    """The outcome, None if it still waits."""
    try:
        next(steps)
    except StopIteration as end:
        return bool(end.value)
    return None


def test_the_oldest_is_the_first_made_whatever_became_of_others() -> None:
    incomplete, (first, second, third) = filled(1, 2, 3)
    incomplete.remove(second)
    assert incomplete.oldest() is first
    incomplete.remove(first)
    assert incomplete.oldest() is third
    incomplete.remove(third)
    assert incomplete.oldest() is None
    assert len(incomplete) == 0


def test_removing_twice_is_no_error_for_what_is_removed_by_an_end_and_an_answer() -> None:
    incomplete, (first, _) = filled(1, 1)
    incomplete.remove(first)
    incomplete.remove(first)
    assert len(incomplete) == 1


def test_parts_take_the_place_of_the_whole_in_their_order() -> None:
    incomplete, (first, second, third) = filled(1, 4, 1)
    parts = [batch(second.number, 2), batch(second.number, 2)]
    incomplete.replace(second, parts)
    assert incomplete.snapshot() == [first, *parts, third]
    assert incomplete.record_count() == 6


def test_what_is_no_longer_there_cannot_be_split() -> None:
    incomplete, (first,) = filled(2)
    incomplete.remove(first)
    with pytest.raises(KeyError):
        incomplete.replace(first, [batch(first.number)])
    assert incomplete.snapshot() == []


def test_nothing_to_wait_for_takes_no_step() -> None:
    assert outcome(wait(IncompleteBatches())) is True


def test_batches_made_later_are_not_waited_for() -> None:
    incomplete, (first, second) = filled(1, 1)
    steps = wait(incomplete)
    assert outcome(steps) is None
    incomplete.add(batch(incomplete.next_number()))
    incomplete.remove(second)
    assert outcome(steps) is None
    incomplete.remove(first)
    assert outcome(steps) is True
    assert len(incomplete) == 1


def test_the_parts_of_a_batch_are_waited_for_too() -> None:
    incomplete, (whole,) = filled(2)
    steps = wait(incomplete)
    assert outcome(steps) is None
    parts = [batch(whole.number), batch(whole.number)]
    incomplete.replace(whole, parts)
    incomplete.remove(parts[0])
    assert outcome(steps) is None
    incomplete.remove(parts[1])
    assert outcome(steps) is True


def test_whoever_waits_is_woken_by_each_batch_that_goes_and_by_the_end() -> None:
    incomplete, (first, _) = filled(1, 1)
    steps, another = wait(incomplete), wait(incomplete)
    pauses = [next(steps), next(another)]
    assert not any(pause.future.done() for pause in pauses)
    incomplete.remove(first)
    assert all(pause.future.done() for pause in pauses)
    pause = next(steps)
    assert not pause.future.done()
    incomplete.end()
    assert pause.future.done()
    assert outcome(steps) is False


def test_the_end_of_the_time_ends_the_wait_but_not_before_a_last_look() -> None:
    time = MockTime()
    incomplete, (first, second) = filled(1, 1)
    late, lucky = wait(incomplete, time.timer(100)), wait(incomplete, time.timer(100))
    assert next(late).remaining_ms() == 100
    next(lucky)
    time.advance(100)
    assert outcome(late) is False
    incomplete.remove(first)
    incomplete.remove(second)
    assert outcome(lucky) is True


def test_after_the_end_nobody_waits_and_what_is_done_is_done() -> None:
    incomplete, (first,) = filled(1)
    incomplete.end()
    assert outcome(wait(incomplete)) is False
    incomplete.remove(first)
    assert outcome(wait(incomplete)) is True
