"""The offset that a partition may be committed up to, while its records finish in any order."""

from __future__ import annotations

import random

from kclient.common.offsets import OffsetAndMetadata
from kclient.processing.gaps import PartitionProgress


def begun(*offsets: int, end: int | None = None) -> PartitionProgress:
    progress = PartitionProgress()
    for offset in offsets:
        progress.begin(offset, 3)
    progress.reach(offsets[-1] + 1 if end is None else end)
    return progress


def test_nothing_is_to_commit_before_the_first_record_is_finished() -> None:
    progress = begun(5, 6, 7)
    progress.finish(7)
    progress.finish(6)
    assert progress.to_commit() is None
    assert progress.start == 5


def test_the_offset_to_commit_is_that_behind_the_finished_ones_in_a_row() -> None:
    progress = begun(5, 6, 7, 8)
    progress.finish(6)
    progress.finish(5)
    assert progress.to_commit() == OffsetAndMetadata(7, leader_epoch=3)
    progress.finish(8)
    assert progress.to_commit() == OffsetAndMetadata(7, leader_epoch=3)
    assert progress.start == 7


def test_offsets_that_no_reader_is_given_are_committed_with_the_last_record() -> None:
    progress = begun(5, 9, end=20)
    progress.finish(5)
    assert progress.to_commit() == OffsetAndMetadata(6, leader_epoch=3)
    progress.finish(9)
    assert progress.to_commit() == OffsetAndMetadata(20, leader_epoch=3)
    assert progress.start is None


def test_the_end_of_a_batch_is_not_reached_while_the_next_one_is_in_hand() -> None:
    progress = begun(1, end=4)
    progress.begin(6, 3)
    progress.reach(10)
    progress.finish(1)
    assert progress.to_commit() == OffsetAndMetadata(2, leader_epoch=3)


def test_what_was_committed_is_not_to_commit_again() -> None:
    progress = begun(1, 2)
    progress.finish(1)
    progress.committed(2)
    assert progress.to_commit() is None
    progress.finish(2)
    assert progress.to_commit() == OffsetAndMetadata(3, leader_epoch=3)


def test_in_any_order_an_offset_is_committed_only_behind_finished_ones() -> None:
    chance = random.Random(5)
    offsets = sorted(chance.sample(range(1000), 200))
    progress = begun(*offsets)
    finished: set[int] = set()
    for offset in chance.sample(offsets, 200):
        progress.finish(offset)
        finished.add(offset)
        to_commit = progress.to_commit()
        below = [before for before in offsets if to_commit is not None and before < to_commit.offset]
        assert finished.issuperset(below)
        first = next((left for left in offsets if left not in finished), None)
        assert progress.start == first
    assert progress.to_commit() == OffsetAndMetadata(offsets[-1] + 1, leader_epoch=3)
