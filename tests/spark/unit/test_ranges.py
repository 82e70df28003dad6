"""Ranges are cut so that tasks are even, and nothing is read twice or not at all."""

from __future__ import annotations

import pickle

from hypothesis import given
from hypothesis import strategies as st

from kclient.common.topic_partition import TopicPartition
from kclient.spark.ranges import OffsetRange, split

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def test_a_range_is_a_task_when_nothing_else_is_asked_for() -> None:
    assert split([OffsetRange(T1, 5, 9), OffsetRange(T0, 0, 3)]) == [
        OffsetRange(T0, 0, 3),
        OffsetRange(T1, 5, 9),
    ]


def test_empty_ranges_are_left_out() -> None:
    assert split([OffsetRange(T0, 4, 4), OffsetRange(T1, 0, 1)], 1, 10) == [OffsetRange(T1, 0, 1)]
    assert split([], 8, 10) == []


def test_a_long_partition_is_shared_by_more_tasks_than_a_short_one() -> None:
    pieces = split([OffsetRange(T0, 0, 900), OffsetRange(T1, 0, 100)], min_partitions=10)
    assert [piece.tp for piece in pieces].count(T0) == 9
    assert {piece.size for piece in pieces} == {100}


def test_no_task_is_longer_than_max_records() -> None:
    pieces = split([OffsetRange(T0, 10, 35)], max_records_per_partition=10)
    assert [(piece.start, piece.end) for piece in pieces] == [(10, 18), (18, 26), (26, 35)]


def test_min_partitions_cuts_further_what_max_records_has_cut() -> None:
    pieces = split([OffsetRange(T0, 0, 40), OffsetRange(T1, 0, 10)], 8, 20)
    assert len(pieces) == 8
    assert max(piece.size for piece in pieces) <= 7


def test_there_are_never_more_tasks_than_offsets() -> None:
    assert len(split([OffsetRange(T0, 7, 10)], min_partitions=50)) == 3


RANGES = st.dictionaries(
    st.builds(TopicPartition, st.sampled_from("ab"), st.integers(0, 5)),
    st.tuples(st.integers(0, 2**62), st.integers(0, 3000)),
    max_size=8,
)


@given(RANGES, st.none() | st.integers(1, 60), st.none() | st.integers(50, 2000))
def test_every_offset_is_in_exactly_one_task(
    found: dict[TopicPartition, tuple[int, int]], least: int | None, most: int | None
) -> None:
    ranges = [OffsetRange(tp, start, start + size) for tp, (start, size) in found.items()]
    pieces = split(ranges, least, most)
    for each in ranges:
        at = each.start
        for piece in (piece for piece in pieces if piece.tp == each.tp):
            assert piece.start == at
            assert piece.size > 0
            at = piece.end
        assert at == each.end
    assert most is None or all(piece.size <= most for piece in pieces)
    offsets = sum(each.size for each in ranges)
    assert len(pieces) >= min(least or 0, offsets)
    assert pieces == split(reversed(ranges), least, most)


def test_a_range_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(OffsetRange(T0, 1, 2))) == OffsetRange(T0, 1, 2)
