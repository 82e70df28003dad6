"""Decoding without moving anything, moving without decoding, and taking that back."""

from __future__ import annotations

from typing import Any

import pytest

from kclient.common.topic_partition import TopicPartition
from kclient.consumer.internals.completed_fetch import COLUMNS, RECORDS
from kclient.consumer.internals.fetch_position import FetchPosition
from kclient.errors import CorruptRecordError

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def fetched(rig: Any) -> Any:
    """A consumer with five records of each of two partitions in its buffer, and nothing handed out."""
    rig.fill(T0, 5)
    rig.fill(T1, 5)
    rig.consumer.assign([T0, T1])
    rig.rounds(20)
    assert len(rig.core.buffer.turns()) == 2
    return rig


def position(rig: Any, tp: TopicPartition) -> int:
    valid = rig.core.assigned.state(tp).valid_position()
    assert valid is not None
    return int(valid.offset)


def offsets(portion: Any) -> list[int]:
    return [record.offset for record in portion.data[portion.taken :]]


def test_collecting_moves_nothing_and_gives_the_same_again(fetched: Any) -> None:
    collector = fetched.core.collector
    for _ in range(2):
        portions = collector.collect(RECORDS, 100)
        assert {portion.fetch.tp: offsets(portion) for portion in portions} == {
            T0: [0, 1, 2, 3, 4],
            T1: [0, 1, 2, 3, 4],
        }
        assert [position(fetched, tp) for tp in (T0, T1)] == [0, 0]


@pytest.mark.parametrize(("most", "partitions", "counts"), [(3, None, [3]), (7, None, [5, 2]), (100, 1, [5])])
def test_no_more_is_collected_than_is_asked_for(
    fetched: Any, most: int, partitions: int | None, counts: list[int]
) -> None:
    portions = fetched.core.collector.collect(RECORDS, most, partitions)
    assert [min(portion.left, most) for portion in portions] == counts


def test_handing_out_moves_the_position_and_says_where_it_was(fetched: Any) -> None:
    collector = fetched.core.collector
    (portion,) = collector.collect(RECORDS, 3)
    undo: dict[TopicPartition, FetchPosition] = {}
    assert collector.hand_out(portion, 2, undo)
    tp = portion.fetch.tp
    assert position(fetched, tp) == 2
    assert undo[tp].offset == 0
    assert collector.hand_out(portion, 1, undo)
    assert position(fetched, tp) == 3
    assert undo[tp].offset == 2


def test_what_was_handed_out_is_fetched_again_when_it_is_taken_back(fetched: Any) -> None:
    collector = fetched.core.collector
    (portion,) = collector.collect(RECORDS, 100, 1)
    undo: dict[TopicPartition, FetchPosition] = {}
    assert collector.hand_out(portion, 3, undo)
    tp = portion.fetch.tp
    collector.take_back(tp, undo[tp])
    assert position(fetched, tp) == 0
    fetched.rounds(100)  # the fetch that is in flight waits at the broker first
    again = {each.fetch.tp: offsets(each) for each in collector.collect(RECORDS, 100)}
    assert again[tp] == [0, 1, 2, 3, 4]


def test_nothing_is_handed_out_of_what_was_discarded_or_is_not_assigned_any_more(fetched: Any) -> None:
    collector = fetched.core.collector
    first, second = collector.collect(RECORDS, 100)
    fetched.core.buffer.discard(first.fetch.tp)
    assert not collector.hand_out(first, 1)
    fetched.core.assigned.replace((), fetched.core.metadata.topic_id)
    assert not collector.hand_out(second, 1)


def test_a_position_that_moved_since_makes_what_was_fetched_worthless(fetched: Any) -> None:
    collector = fetched.core.collector
    first, _ = collector.collect(RECORDS, 100)
    tp = first.fetch.tp
    fetched.core.assigned.state(tp).seek(FetchPosition(4), validate=False)
    assert not collector.hand_out(first, 1)
    assert [each.fetch.tp for each in collector.collect(RECORDS, 100)] == [({T0, T1} - {tp}).pop()]


def test_a_paused_partition_gives_nothing_and_keeps_what_it_has(fetched: Any) -> None:
    collector = fetched.core.collector
    fetched.consumer.pause([T0])
    assert [each.fetch.tp for each in collector.collect(RECORDS, 100)] == [T1]
    fetched.consumer.resume([T0])
    assert {each.fetch.tp for each in collector.collect(RECORDS, 100)} == {T0, T1}


def test_catching_up_with_a_loop_keeps_the_place_before_its_last_record(fetched: Any) -> None:
    collector = fetched.core.collector
    (portion,) = collector.collect(RECORDS, 100, 1)
    undo: dict[TopicPartition, FetchPosition] = {}
    collector.settle(portion, 3, undo)
    tp = portion.fetch.tp
    assert position(fetched, tp) == 3
    assert undo[tp].offset == 2


def test_columns_and_records_of_the_same_fetch_may_be_collected_in_turns(fetched: Any) -> None:
    collector = fetched.core.collector
    (portion,) = collector.collect(RECORDS, 2, 1)
    assert collector.hand_out(portion, 2)
    tp = portion.fetch.tp
    columns = {each.fetch.tp: each for each in collector.collect(COLUMNS, None)}
    assert (columns[tp].position, columns[tp].left) == (2, 3)


def test_the_error_of_one_partition_comes_after_the_records_of_those_before_it(fetched: Any) -> None:
    collector = fetched.core.collector
    before, broken = (fetch.tp for fetch in fetched.core.buffer.turns())
    error = CorruptRecordError("broken")
    fetched.core.buffer.first(broken).error = error
    assert [each.fetch.tp for each in collector.collect(RECORDS, 100)] == [before]
    with pytest.raises(CorruptRecordError, match="broken"):
        collector.collect(RECORDS, 100)
    assert [each.fetch.tp for each in collector.collect(RECORDS, 100)] == [before]
    assert [position(fetched, tp) for tp in (T0, T1)] == [0, 0]
