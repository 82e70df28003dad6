"""Conditions on records: which partitions may match, what is left of a range, and two at once."""

from __future__ import annotations

import itertools
import pickle

import pytest

from kclient.common.topic_partition import TopicPartition
from kclient.spark.condition import Condition
from kclient.spark.ranges import OffsetRange

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


def test_without_limits_everything_matches_and_the_range_stays() -> None:
    wanted = OffsetRange(T0, 3, 9)
    assert Condition().may_hold_in(T0)
    assert Condition().narrow(wanted) == wanted


@pytest.mark.parametrize(
    ("condition", "held"),
    [
        (Condition(topics=frozenset({"t"})), [T0, T1]),
        (Condition(partitions=frozenset({0})), [T0, U0]),
        (Condition(topics=frozenset({"t"}), partitions=frozenset({0, 7})), [T0]),
        (Condition(topics=frozenset()), []),
        (Condition(partitions=frozenset()), []),
        (Condition(least_offset=5, timestamp_ms=5), [T0, T1, U0]),
    ],
)
def test_topics_and_partitions_both_have_to_match(condition: Condition, held: list[TopicPartition]) -> None:
    assert [tp for tp in (T0, T1, U0) if condition.may_hold_in(tp)] == held
    ranges = [condition.narrow(OffsetRange(tp, 5, 6)) for tp in (T0, T1, U0)]
    assert [each.tp for each in ranges if each is not None] == held


@pytest.mark.parametrize(
    ("least", "limit", "left"),
    [
        (None, 5, (3, 5)),
        (5, None, (5, 9)),
        (0, 100, (3, 9)),
        (4, 5, (4, 5)),
        (9, None, None),
        (None, 3, None),
        (5, 5, None),
        (6, 5, None),
        (0, 0, None),
    ],
)
def test_a_range_is_cut_to_the_offsets_that_match(
    least: int | None, limit: int | None, left: tuple[int, int] | None
) -> None:
    found = Condition(least_offset=least, offset_limit=limit).narrow(OffsetRange(T0, 3, 9))
    assert found == (None if left is None else OffsetRange(T0, *left))


def test_a_time_alone_does_not_cut_a_range() -> None:
    wanted = OffsetRange(T0, 3, 9)
    assert Condition(timestamp_ms=2**62).narrow(wanted) == wanted


def test_both_at_once_is_the_narrower_of_each_limit() -> None:
    one = Condition(frozenset({"t", "u"}), frozenset({0, 1}), 3, 9, 100)
    other = Condition(frozenset({"u", "v"}), frozenset({1, 2}), 5, 20, 50)
    both = Condition(frozenset({"u"}), frozenset({1}), 5, 9, 100)
    assert one.also(other) == other.also(one) == both


def test_no_limit_leaves_the_others_limit_also_if_that_is_nothing_or_zero() -> None:
    for other in (Condition(frozenset(), frozenset(), 0, 0, 0), Condition(frozenset({"t"}), None, 7)):
        assert Condition().also(other) == other.also(Condition()) == other


def test_a_limit_that_lets_nothing_through_still_does_so_beside_another() -> None:
    nothing = Condition(topics=frozenset(), offset_limit=0)
    some = Condition(topics=frozenset({"t"}), offset_limit=5)
    assert nothing.also(some) == some.also(nothing) == nothing


def test_what_matches_both_matches_both_at_once() -> None:
    conditions = [
        Condition(),
        Condition(topics=frozenset({"t"})),
        Condition(partitions=frozenset({0}), least_offset=4),
        Condition(least_offset=6, offset_limit=8),
        Condition(topics=frozenset({"u"}), offset_limit=5),
    ]
    for one, other in itertools.product(conditions, repeat=2):
        for tp in (T0, T1, U0):
            first = one.narrow(OffsetRange(tp, 3, 9))
            one_by_one = None if first is None else other.narrow(first)
            assert one.also(other).narrow(OffsetRange(tp, 3, 9)) == one_by_one


def test_it_travels_to_the_tasks() -> None:
    condition = Condition(frozenset({"t"}), None, 3, None, 7)
    assert pickle.loads(pickle.dumps(condition)) == condition
