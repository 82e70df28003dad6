"""DoneOffsets: done records in any order, in one committed offset with its metadata."""

from __future__ import annotations

import random

import pytest

from kclient.common.offsets import OffsetAndMetadata
from kclient.processing.done_offsets import MOST_METADATA, DoneOffsets


def scan(done: DoneOffsets, records: list[int], wanted: set[int], end: int) -> list[int]:
    """Go over the records as a run does; those that it takes."""
    taken = []
    for offset in records:
        if offset in done:
            done.passed(offset)
        elif offset in wanted and done.take(offset):
            taken.append(offset)
        else:
            done.leave()
    done.finish(end)
    return taken


def test_the_position_is_the_first_that_is_not_done() -> None:
    done = DoneOffsets(3)
    assert scan(done, [3, 4, 5, 6, 7], {3, 4, 6}, 8) == [3, 4, 6]
    assert (done.position, done.committed.metadata) == (5, "kclient.replay:1+1")
    again = DoneOffsets(0, done.committed)
    assert [offset in again for offset in range(9)] == [True] * 5 + [False, True, False, False]


def test_offsets_without_records_are_done_between_records_that_are() -> None:
    done = DoneOffsets(0)
    scan(done, [2, 5, 9, 12], {2, 5, 12}, 20)
    assert done.position == 6
    assert done.committed.metadata == "kclient.replay:6+8"  # 12 up to the end, 14 to 20


def test_the_begin_of_the_log_comes_before_older_offsets() -> None:
    assert DoneOffsets(10, OffsetAndMetadata(4, "kclient.replay:2+1,7+2")).position == 10
    assert DoneOffsets(10, OffsetAndMetadata(4, "kclient.replay:2+1,2+8")).position == 17


@pytest.mark.parametrize(
    "metadata", ["", "of another", "kclient.replay:", "kclient.replay:x", "kclient.replay:1"]
)
def test_metadata_of_others_says_nothing(metadata: str) -> None:
    assert DoneOffsets(0, OffsetAndMetadata(4, metadata)).committed == OffsetAndMetadata(4)


def test_a_record_that_there_is_no_room_for_is_not_taken_and_later_runs_take_it() -> None:
    count = 2 * MOST_METADATA
    done = DoneOffsets(0)
    taken = scan(done, list(range(count)), set(range(1, count, 2)), count)
    assert 0 < len(taken) < count // 2
    assert len(done.committed.metadata) <= MOST_METADATA
    again = DoneOffsets(0, done.committed)
    assert sorted(taken + scan(again, list(range(count)), set(range(count)), count)) == list(range(count))
    assert again.committed == OffsetAndMetadata(count)


@pytest.mark.parametrize("seed", range(20))
def test_every_record_is_taken_once_whatever_is_chosen_in_turns(seed: int) -> None:
    chance = random.Random(seed)
    records = sorted(chance.sample(range(400), 150))
    committed, taken = None, []
    for _ in range(6):
        done = DoneOffsets(records[0], committed)
        taken += scan(done, records, {offset for offset in records if chance.random() < 0.4}, 400)
        committed = done.committed
        assert {offset for offset in records if offset in DoneOffsets(0, committed)} == set(taken)
    taken += scan(DoneOffsets(0, committed), records, set(records), 400)
    assert sorted(taken) == records
