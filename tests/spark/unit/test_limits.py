"""Limits of a micro-batch: how much it takes, and when it waits for more."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.mock_time import MockTime
from kclient.common.topic_partition import TopicPartition
from kclient.spark.limits import DelayGate, TriggerLimits, limit_offsets

A, B, C = (TopicPartition("t", number) for number in range(3))


def test_offsets_are_shared_out_by_what_is_left_of_each_partition() -> None:
    end = limit_offsets({A: 0, B: 100, C: 5}, {A: 900, B: 200, C: 5}, 100)
    assert end == {A: 90, B: 110, C: 5}


def test_a_partition_with_little_left_gets_one_offset_at_least() -> None:
    assert limit_offsets({A: 0, B: 0}, {A: 1_000_000, B: 1}, 10) == {A: 9, B: 1}


def test_all_is_taken_if_it_is_less_than_the_limit() -> None:
    assert limit_offsets({A: 3}, {A: 7}, 4) == {A: 7}


@given(
    st.dictionaries(
        st.sampled_from([A, B, C]), st.tuples(st.integers(0, 2**60), st.integers(0, 2**60)), min_size=1
    ),
    st.integers(1, 2**61),
)
def test_a_limit_always_goes_on_and_never_too_far(
    found: dict[TopicPartition, tuple[int, int]], most: int
) -> None:
    start = {tp: first for tp, (first, _) in found.items()}
    end = {tp: first + size for tp, (first, size) in found.items()}
    limited = limit_offsets(start, end, most)
    assert set(limited) == set(end)
    assert all(start[tp] <= limited[tp] <= end[tp] for tp in end)
    assert sum(limited.values()) - sum(start.values()) <= most + len(end)
    assert limited == end or sum(limited.values()) > sum(start.values())


def test_bytes_are_shared_out_by_what_the_offsets_of_each_partition_take() -> None:
    start, end = {A: 0, B: 0}, {A: 1000, B: 1000}
    assert limit_offsets(start, end, 55_000, {A: 100.0, B: 10.0}) == {A: 500, B: 500}
    assert limit_offsets(start, end, 1, {A: 100.0, B: 10.0}) == {A: 1, B: 1}
    assert limit_offsets(start, end, 110_000, {A: 100.0, B: 10.0}) == end


def test_the_first_batch_never_waits() -> None:
    assert not DelayGate(TriggerLimits(min_offsets=100), MockTime()).waits(1)


def test_a_batch_waits_until_there_is_enough() -> None:
    gate = DelayGate(TriggerLimits(min_offsets=100), MockTime())
    gate.waits(0)
    assert gate.waits(99)
    assert not gate.waits(100)


def test_a_batch_waits_no_longer_than_the_delay() -> None:
    time = MockTime()
    gate = DelayGate(TriggerLimits(min_offsets=100, max_delay_ms=5000), time)
    gate.waits(0)
    time.advance(4999)
    assert gate.waits(1)
    time.advance(1)
    assert not gate.waits(1)
    assert gate.waits(1), "the delay begins again with the batch"


def test_without_a_minimum_no_batch_waits() -> None:
    gate = DelayGate(TriggerLimits(), MockTime())
    assert not gate.waits(0)
    assert not gate.waits(0)
