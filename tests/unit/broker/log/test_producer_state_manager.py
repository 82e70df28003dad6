"""State of all producers of a log: open transactions, and which snapshot it goes back to."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.broker.logs import TP
from kclient.broker.log.files import SNAPSHOT_SUFFIX, offset_name
from kclient.broker.log.producer_snapshot import write_snapshot
from kclient.broker.log.producer_state import BatchMetadata, CompletedTxn, ProducerStateEntry
from kclient.broker.log.producer_state_manager import ProducerStateManager

NOW_MS = 1000
EXPIRATION_MS = 100


def producer(
    pid: int, *, txn: int | None = None, last_offset: int = 0, at_ms: int = NOW_MS
) -> ProducerStateEntry:
    entry = ProducerStateEntry(pid, producer_epoch=0, last_timestamp_ms=at_ms, current_txn_first_offset=txn)
    entry.batches.append(BatchMetadata(last_offset, last_offset, 0, at_ms))
    return entry


def manager(directory: Path, *entries: ProducerStateEntry) -> ProducerStateManager:
    made = ProducerStateManager(TP, directory, producer_id_expiration_ms=EXPIRATION_MS)
    for entry in entries:
        made.load_entry(entry)
    return made


def snapshot_path(directory: Path, offset: int) -> Path:
    return directory / offset_name(offset, SNAPSHOT_SUFFIX)


def snapshots(directory: Path, *offsets: int) -> None:
    """Snapshots whose only producer wrote its last record just before them."""
    for offset in offsets:
        write_snapshot(snapshot_path(directory, offset), [producer(1, last_offset=offset - 1)])


def test_the_oldest_open_transaction_is_the_first_that_is_unstable(tmp_path: Path) -> None:
    state = manager(tmp_path, producer(1, txn=30), producer(2, txn=10), producer(3))
    assert state.first_unstable_offset == 10
    state.complete_txn(CompletedTxn(2, 10, 40, is_aborted=True))
    state.on_high_watermark_updated(41)
    assert state.first_unstable_offset == 30
    state.complete_txn(CompletedTxn(1, 30, 41, is_aborted=False))
    state.on_high_watermark_updated(42)
    assert state.first_unstable_offset is None


def test_a_transaction_is_unstable_until_its_marker_is_below_the_high_watermark(tmp_path: Path) -> None:
    state = manager(tmp_path, producer(1, txn=10), producer(2, txn=20))
    state.complete_txn(CompletedTxn(1, 10, 40, is_aborted=True))
    state.complete_txn(CompletedTxn(2, 20, 30, is_aborted=False))
    unstable = []
    for high_watermark in (30, 31, 40, 41):
        state.on_high_watermark_updated(high_watermark)
        unstable.append(state.first_unstable_offset)
    assert unstable == [10, 10, 10, None]


def test_a_truncation_forgets_the_markers_that_it_cut_off(tmp_path: Path) -> None:
    state = manager(tmp_path, producer(1, txn=10))
    state.complete_txn(CompletedTxn(1, 10, 40, is_aborted=True))
    state.truncate_fully_and_start_at(5)
    assert state.first_unstable_offset is None


def test_a_transaction_is_stable_up_to_its_marker_or_to_the_oldest_of_the_others(tmp_path: Path) -> None:
    state = manager(tmp_path, producer(1, txn=10))
    ended = CompletedTxn(1, 10, 40, is_aborted=True)
    assert state.last_stable_offset(ended) == 41
    state.load_entry(producer(2, txn=30))
    state.load_entry(producer(3, txn=20))
    assert state.last_stable_offset(ended) == 20
    assert state.first_unstable_offset == 10, "asking ends nothing"


def test_a_snapshot_that_is_damaged_is_removed_and_the_one_before_it_taken(tmp_path: Path) -> None:
    snapshots(tmp_path, 10, 20, 30)
    for offset in (20, 30):
        snapshot_path(tmp_path, offset).write_bytes(b"torn")
    state = manager(tmp_path)
    state.truncate_and_reload(0, 35, NOW_MS)
    assert (state.map_end_offset, state.producers[1].last_offset) == (10, 9)
    assert state.snapshot_offsets() == [10]


def test_without_a_usable_snapshot_the_log_is_replayed_from_its_start(tmp_path: Path) -> None:
    snapshot_path(tmp_path, 20).write_bytes(b"")
    state = manager(tmp_path, producer(7, txn=3))
    state.truncate_and_reload(5, 35, NOW_MS)
    assert (state.map_end_offset, state.producers, state.first_unstable_offset) == (5, {}, None)
    state.take_snapshot()
    assert state.snapshot_offsets() == [], "there is nothing yet that the log's start does not say"


@pytest.mark.parametrize(("start", "end", "left"), [(10, 30, [10, 20, 30]), (11, 29, [20]), (21, 29, [])])
def test_snapshots_outside_the_log_are_removed(tmp_path: Path, start: int, end: int, left: list[int]) -> None:
    snapshots(tmp_path, 10, 20, 30)
    state = manager(tmp_path)
    state.truncate_and_reload(start, end, NOW_MS)
    assert state.snapshot_offsets() == left
    assert state.map_end_offset == max(left, default=start)


def test_a_state_that_is_that_of_the_logs_end_is_kept(tmp_path: Path) -> None:
    snapshots(tmp_path, 10, 20, 30)
    state = manager(tmp_path, producer(5, txn=22))
    state.map_end_offset = 25
    state.truncate_and_reload(15, 25, NOW_MS)
    assert (list(state.producers), state.first_unstable_offset, state.map_end_offset) == ([5], 22, 25)
    assert state.snapshot_offsets() == [20]
    state.take_snapshot()
    assert state.snapshot_offsets() == [20, 25]


def test_what_has_expired_is_not_taken_from_a_snapshot_unless_its_transaction_is_open(tmp_path: Path) -> None:
    old_ms = NOW_MS - EXPIRATION_MS
    entries = [producer(1, at_ms=old_ms), producer(2, at_ms=old_ms + 1), producer(3, at_ms=old_ms, txn=4)]
    write_snapshot(snapshot_path(tmp_path, 10), entries)
    state = manager(tmp_path)
    state.truncate_and_reload(0, 10, NOW_MS)
    assert (sorted(state.producers), state.first_unstable_offset) == ([2, 3], 4)


def test_a_start_that_passes_the_state_moves_it_along_and_forgets_no_producer(tmp_path: Path) -> None:
    state = manager(tmp_path, producer(1))
    state.map_end_offset = 10
    state.on_log_start_offset_incremented(5)
    assert state.map_end_offset == 10
    state.on_log_start_offset_incremented(20)
    assert (state.map_end_offset, list(state.producers)) == (20, [1])
    state.take_snapshot()
    assert state.snapshot_offsets() == [20]


def test_other_files_of_the_log_are_no_snapshots(tmp_path: Path) -> None:
    snapshots(tmp_path, 10)
    for name in (
        "7.snapshot",
        offset_name(20, ".log"),
        offset_name(30, ".snapshot.deleted"),
        "leader-epoch-checkpoint",
    ):
        (tmp_path / name).touch()
    state = manager(tmp_path)
    assert state.snapshot_offsets() == [10]
    state.truncate_fully_and_start_at(3)
    assert len(list(tmp_path.iterdir())) == 4
