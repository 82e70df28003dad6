"""The file in which the state of a log's producers is kept: Kafka's ProducerSnapshot, version 1."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

from kclient._accel import crc32c
from kclient.broker.log.file_system import DISK, FileSystem
from kclient.broker.log.producer_state import NO_SEQUENCE, BatchMetadata, ProducerStateEntry

_HEADER = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")
_VERSION = 1


class CorruptSnapshotError(Exception):
    """A snapshot that is not whole: an older one and the log say the same."""


def write_snapshot(path: Path, entries: Iterable[ProducerStateEntry], file_system: FileSystem = DISK) -> None:
    """Write the state of all `entries`. Raises OSError.

    Not forced to disk and not atomic: the checksum tells a torn file from a whole one, and what it holds can
    be had from the log again.
    """
    packed = [
        _ENTRY.pack(
            entry.producer_id,
            entry.producer_epoch,
            entry.last_sequence,
            entry.last_offset,
            entry.batches[-1].offset_delta if entry.batches else 0,
            entry.last_timestamp_ms,
            entry.coordinator_epoch,
            -1 if entry.current_txn_first_offset is None else entry.current_txn_first_offset,
        )
        for entry in entries
    ]
    body = _COUNT.pack(len(packed)) + b"".join(packed)
    data = _HEADER.pack(_VERSION, crc32c(body)) + body
    file_system.write(path, data, size=len(data))


def read_snapshot(path: Path, file_system: FileSystem = DISK) -> list[ProducerStateEntry]:
    """The state in the file. Raises `CorruptSnapshotError` or OSError."""
    data = file_system.read(path)
    if len(data) < _HEADER.size + _COUNT.size:
        raise CorruptSnapshotError(f"{path.name} has only {len(data)} bytes")
    version, crc = _HEADER.unpack_from(data)
    if version != _VERSION:
        raise CorruptSnapshotError(f"{path.name} has version {version}, only {_VERSION} is known")
    body = memoryview(data)[_HEADER.size :]
    if crc32c(body) != crc:
        raise CorruptSnapshotError(f"{path.name} does not match its checksum")
    (count,) = _COUNT.unpack_from(body)
    entries = body[_COUNT.size :]
    if count < 0 or len(entries) != count * _ENTRY.size:
        raise CorruptSnapshotError(
            f"{path.name} announces {count} entries and has {len(entries)} bytes of them"
        )
    return [_entry(fields) for fields in _ENTRY.iter_unpack(entries)]


def _entry(fields: tuple[int, ...]) -> ProducerStateEntry:
    producer_id, epoch, last_sequence, last_offset, delta, timestamp_ms, coordinator_epoch, txn = fields
    entry = ProducerStateEntry(
        producer_id,
        producer_epoch=epoch,
        coordinator_epoch=coordinator_epoch,
        last_timestamp_ms=timestamp_ms,
        current_txn_first_offset=None if txn < 0 else txn,
    )
    # Without an offset there is no data batch to speak of, only a marker or a new epoch.
    if last_offset >= 0 and last_sequence != NO_SEQUENCE:
        entry.batches.append(BatchMetadata(last_sequence, last_offset, delta, timestamp_ms))
    return entry
