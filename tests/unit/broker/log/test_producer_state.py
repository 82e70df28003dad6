"""Snapshots of producers in Kafka's bytes, and what is remembered of a producer."""

from __future__ import annotations

import struct
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.broker.logs import TP
from kclient._accel import crc32c
from kclient.broker.log.producer_snapshot import CorruptSnapshotError, read_snapshot, write_snapshot
from kclient.broker.log.producer_state import AppendOrigin, BatchMetadata, ProducerStateEntry
from kclient.broker.log.producer_state_manager import ProducerStateManager
from kclient.errors import InvalidProducerEpochError


def entry(pid: int, *batches: BatchMetadata, **fields: int) -> ProducerStateEntry:
    made = ProducerStateEntry(pid, producer_epoch=3, coordinator_epoch=4, last_timestamp_ms=1000, **fields)
    made.batches.extend(batches)
    return made


def test_a_snapshot_has_kafkas_bytes(tmp_path: Path) -> None:
    path = tmp_path / "s"
    open_txn = entry(
        8, BatchMetadata(1, 50, 1, 900), BatchMetadata(9, 70, 4, 1000), current_txn_first_offset=66
    )
    empty = entry(9)
    write_snapshot(path, [open_txn, empty])
    body = struct.pack(">i", 2)
    body += struct.pack(">qhiqiqiq", 8, 3, 9, 70, 4, 1000, 4, 66)
    body += struct.pack(">qhiqiqiq", 9, 3, -1, -1, 0, 1000, 4, -1)
    assert path.read_bytes() == struct.pack(">hI", 1, crc32c(body)) + body
    again, nothing = read_snapshot(path)
    assert (again.producer_id, list(again.batches)) == (8, [BatchMetadata(9, 70, 4, 1000)])
    assert (again.current_txn_first_offset, again.coordinator_epoch, again.producer_epoch) == (66, 4, 3)
    assert (list(nothing.batches), nothing.current_txn_first_offset) == ([], None)


def test_a_snapshot_that_is_not_whole_is_recognised(tmp_path: Path) -> None:
    path = tmp_path / "s"
    write_snapshot(path, [entry(8, BatchMetadata(9, 70, 4, 1000))])
    data = path.read_bytes()
    for damaged in (
        b"",
        data[:9],
        data[:-1],
        data + b"\0",
        b"\0\2" + data[2:],
        data[:-1] + bytes([data[-1] ^ 1]),
    ):
        path.write_bytes(damaged)
        with pytest.raises(CorruptSnapshotError):
            read_snapshot(path)


def test_the_last_five_batches_are_remembered() -> None:
    state = entry(1)
    for i in range(7):
        state.add_batch(3, BatchMetadata(i, i, 0, 0))
    assert state.find_duplicate(3, 1, 1) is None
    assert state.find_duplicate(3, 2, 2) == BatchMetadata(2, 2, 0, 0)
    assert state.find_duplicate(4, 2, 2) is None
    assert state.find_duplicate(3, 2, 3) is None


def manager(tmp_path: Path) -> ProducerStateManager:
    return ProducerStateManager(TP, tmp_path, producer_id_expiration_ms=100)


def facts(pid: int, seq: int, offset: int, *, epoch: int = 0, transactional: bool = False) -> SimpleNamespace:
    """A batch of one record."""
    return SimpleNamespace(
        producer_id=pid, producer_epoch=epoch, base_sequence=seq, last_sequence=seq, base_offset=offset,
        last_offset=offset, max_timestamp_ms=1000, is_transactional=transactional,
    )  # fmt: skip


def put(
    state: ProducerStateManager, batch: SimpleNamespace, origin: AppendOrigin = AppendOrigin.CLIENT
) -> None:
    info = state.prepare_update(batch.producer_id, origin)
    info.append_data(batch)
    state.update(info)
    state.map_end_offset = batch.last_offset + 1


def test_a_draft_changes_nothing_until_it_is_taken(tmp_path: Path) -> None:
    state = manager(tmp_path)
    put(state, facts(1, 0, 0))
    draft = state.prepare_update(1, AppendOrigin.CLIENT)
    draft.append_data(facts(1, 1, 1, transactional=True))
    assert state.producers[1].last_sequence == 0
    assert state.first_unstable_offset is None
    state.update(draft)
    assert state.producers[1].last_sequence == 1
    assert state.first_unstable_offset == 1


def test_a_replica_believes_what_the_leader_checked(tmp_path: Path) -> None:
    state = manager(tmp_path)
    put(state, facts(1, 0, 0, epoch=2))
    put(state, facts(1, 17, 1, epoch=2), AppendOrigin.REPLICATION)
    put(state, facts(1, 0, 2, epoch=1), AppendOrigin.REPLICATION)
    with pytest.raises(InvalidProducerEpochError):
        put(state, facts(1, 0, 3, epoch=0))


def test_idle_producers_expire_but_not_within_a_transaction(tmp_path: Path) -> None:
    state = manager(tmp_path)
    put(state, facts(1, 0, 0))
    put(state, facts(2, 0, 1, transactional=True))
    state.remove_expired(1099)
    assert sorted(state.producers) == [1, 2]
    state.remove_expired(1100)
    assert sorted(state.producers) == [2]


def test_snapshots_are_taken_once_an_offset_and_reloaded(tmp_path: Path) -> None:
    state = manager(tmp_path)
    state.take_snapshot()
    put(state, facts(1, 0, 4))
    state.take_snapshot()
    state.take_snapshot()
    put(state, facts(1, 1, 9))
    state.take_snapshot()
    assert state.snapshot_offsets() == [5, 10]
    again = manager(tmp_path)
    again.truncate_and_reload(0, 7, 1050)
    assert (again.map_end_offset, again.snapshot_offsets()) == (5, [5])
    assert again.producers[1].last_sequence == 0
    again = manager(tmp_path)
    again.truncate_and_reload(0, 7, 1100)  # expired meanwhile
    assert again.producers == {}


def test_snapshots_without_a_segment_go_but_for_the_newest(tmp_path: Path) -> None:
    state = manager(tmp_path)
    for offset in (4, 9, 14, 19):
        put(state, facts(1, offset, offset), AppendOrigin.REPLICATION)
        state.take_snapshot()
    state.remove_stray_snapshots([0, 10])
    assert state.snapshot_offsets() == [10, 20]
    assert state.mark_snapshot_deleted(10) == tmp_path / f"{10:020d}.snapshot.deleted"
    assert state.mark_snapshot_deleted(10) is None
    state.truncate_fully_and_start_at(3)
    assert (state.snapshot_offsets(), state.producers, state.map_end_offset) == ([], {}, 3)
