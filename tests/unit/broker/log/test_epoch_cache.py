"""Leader epochs of a log: what is written, what is kept in memory when a write fails, and limits of look-ups."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.broker.logs import TP
from kclient.broker.log.checkpoints import EpochCheckpoint
from kclient.broker.log.epoch_cache import LeaderEpochCache

NAME = "leader-epoch-checkpoint"


def cache(directory: Path, *entries: tuple[int, int]) -> LeaderEpochCache:
    made = LeaderEpochCache(TP, EpochCheckpoint(directory / NAME))
    for epoch, start in entries:
        made.assign(epoch, start)
    return made


def on_disk(directory: Path) -> list[tuple[int, int]]:
    return EpochCheckpoint(directory / NAME).read()


@contextmanager
def unwritable(directory: Path) -> Iterator[None]:
    """A checkpoint that cannot be replaced: a directory is in the place of its temporary file."""
    obstacle = directory / f"{NAME}.tmp"
    obstacle.mkdir()
    try:
        with pytest.raises(OSError, match="Is a directory"):
            yield
    finally:
        obstacle.rmdir()


def test_without_epochs_nothing_can_be_told(tmp_path: Path) -> None:
    epochs = cache(tmp_path)
    assert (epochs.entries, epochs.epoch_for_offset(0), epochs.damaged) == ([], None, False)
    assert epochs.end_offset_for(0, 100) == (-1, -1)
    epochs.truncate_from_start(5)
    epochs.truncate_from_end(5)
    assert list(tmp_path.iterdir()) == []


def test_epochs_and_offsets_below_zero_are_not_noted(tmp_path: Path) -> None:
    epochs = cache(tmp_path, (-1, 0), (0, -1))
    assert (epochs.entries, epochs.latest_epoch) == ([], None)
    assert not (tmp_path / NAME).exists()


def test_an_epoch_that_is_known_costs_no_write(tmp_path: Path) -> None:
    epochs = cache(tmp_path, (0, 0), (1, 5))
    (tmp_path / NAME).unlink()
    epochs.assign(1, 9)
    epochs.truncate_from_end(6)
    epochs.truncate_from_start(0)
    assert not (tmp_path / NAME).exists()
    assert epochs.entries == [(0, 0), (1, 5)]


def test_one_entry_from_the_log_replaces_all_that_contradict_it(tmp_path: Path) -> None:
    epochs = cache(tmp_path, (1, 0), (3, 10), (5, 20), (7, 30))
    epochs.assign(4, 15)
    assert epochs.entries == on_disk(tmp_path) == [(1, 0), (3, 10), (4, 15)]


def test_the_end_of_a_log_that_was_emptied_leaves_no_epoch(tmp_path: Path) -> None:
    epochs = cache(tmp_path, (1, 0), (3, 10))
    epochs.truncate_from_end(0)
    assert (epochs.entries, on_disk(tmp_path), epochs.latest_epoch) == ([], [], None)


def test_the_epoch_of_the_new_start_is_kept_even_if_it_is_the_last(tmp_path: Path) -> None:
    epochs = cache(tmp_path, (1, 0), (3, 10))
    epochs.truncate_from_start(99)
    assert epochs.entries == on_disk(tmp_path) == [(3, 99)]
    epochs.truncate_from_start(50)  # a start never goes back
    assert epochs.entries == [(3, 99)]


def test_a_damaged_file_counts_for_nothing_until_the_log_was_read(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("0\n1\n4 x\n")
    epochs = cache(tmp_path)
    assert (epochs.damaged, epochs.entries) == (True, [])
    epochs.rebuild([(2, 7), (1, 8), (3, 9)])
    assert (epochs.damaged, epochs.entries) == (False, [(2, 7), (3, 9)])
    assert on_disk(tmp_path) == [(2, 7), (3, 9)]


def test_an_epoch_that_could_not_be_written_is_written_when_it_comes_again(tmp_path: Path) -> None:
    epochs = cache(tmp_path, (0, 0))
    with unwritable(tmp_path):
        epochs.assign(1, 5)
    assert on_disk(tmp_path) == [(0, 0)]
    epochs.assign(1, 5)
    assert on_disk(tmp_path) == [(0, 0), (1, 5)]


def test_an_epoch_keeps_its_start_when_a_write_failed_before(tmp_path: Path) -> None:
    epochs = cache(tmp_path, (0, 0), (2, 10))
    with unwritable(tmp_path):
        epochs.truncate_from_start(4)
    epochs.assign(2, 30)
    assert epochs.entries == on_disk(tmp_path) == [(0, 4), (2, 10)]
    assert epochs.epoch_for_offset(29) == 2
