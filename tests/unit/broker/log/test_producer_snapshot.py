"""Snapshots of producers: what is kept of a producer without batches, and files that only look whole."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from kclient._accel import crc32c
from kclient.broker.log.producer_snapshot import CorruptSnapshotError, read_snapshot, write_snapshot
from kclient.broker.log.producer_state import BatchMetadata, ProducerStateEntry


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "10.snapshot"


def sealed(body: bytes, version: int = 1) -> bytes:
    """A file whose checksum is right."""
    return struct.pack(">hI", version, crc32c(body)) + body


def row(last_sequence: int, last_offset: int, txn: int) -> bytes:
    return struct.pack(">qhiqiqiq", 7, 0, last_sequence, last_offset, 0, 1000, 0, txn)


def test_no_producers_are_a_snapshot_too(path: Path) -> None:
    write_snapshot(path, [])
    assert path.read_bytes() == sealed(struct.pack(">i", 0))
    assert read_snapshot(path) == []


def test_a_shorter_snapshot_leaves_nothing_of_a_longer_one(path: Path) -> None:
    write_snapshot(path, [ProducerStateEntry(pid) for pid in range(3)])
    write_snapshot(path, [ProducerStateEntry(9)])
    assert [entry.producer_id for entry in read_snapshot(path)] == [9]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(sealed(struct.pack(">i", -1)), id="fewer than none"),
        pytest.param(sealed(struct.pack(">i", 2**31 - 1)), id="more than there are"),
        pytest.param(sealed(struct.pack(">i", 0) + row(0, 0, -1)), id="fewer than there are"),
        pytest.param(sealed(struct.pack(">i", 1) + row(0, 0, -1)[:-1]), id="part of one"),
        pytest.param(sealed(struct.pack(">i", 0), version=0), id="version before"),
        pytest.param(sealed(struct.pack(">i", 0), version=2), id="version behind"),
        pytest.param(b"\0" * 100, id="zeros"),
    ],
)
def test_a_file_with_a_checksum_that_is_right_can_be_wrong_all_the_same(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    with pytest.raises(CorruptSnapshotError):
        read_snapshot(path)


@pytest.mark.parametrize(
    ("sequence", "offset", "known"), [(0, 0, True), (-1, 5, False), (5, -1, False), (-1, -1, False)]
)
def test_a_batch_needs_a_sequence_and_an_offset(path: Path, sequence: int, offset: int, known: bool) -> None:
    path.write_bytes(sealed(struct.pack(">i", 1) + row(sequence, offset, -1)))
    (entry,) = read_snapshot(path)
    assert list(entry.batches) == ([BatchMetadata(sequence, offset, 0, 1000)] if known else [])


def test_a_transaction_that_began_with_the_log_is_open(path: Path) -> None:
    path.write_bytes(sealed(struct.pack(">i", 2) + row(0, 0, 0) + row(0, 0, -1)))
    assert [entry.current_txn_first_offset for entry in read_snapshot(path)] == [0, None]


def test_a_missing_file_is_not_a_damaged_one(path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_snapshot(path)
