"""Files of the metadata log: what is in a segment or a snapshot, and whether all of it is there.

A segment is called by the offset of its first record, a snapshot by the offset after the last record that it stands
for and by that record's epoch. Both hold batches of magic 2.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs

from kclient.broker.log.files import fsync_dir, offset_name, opened, write_all
from kclient.broker.metadata.record_serde import decode_record, encode_record
from kclient.errors import CorruptRecordError, KafkaError, KafkaStorageError
from kclient.protocol.codec import encode
from kclient.protocol.messages.control_records import SnapshotFooterRecord, SnapshotHeaderRecord
from kclient.protocol.schema import Message
from kclient.record import constants as c
from kclient.record.batch import RecordBatch
from kclient.record.builder import MemoryRecordsBuilder
from kclient.record.control import ControlRecordType, parse_type

SNAPSHOT_SUFFIX = ".checkpoint"
PART_SUFFIX = ".checkpoint.part"
"""Of a snapshot that is being written: it is worth nothing until it has its name."""

_SNAPSHOT_NAME = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")
_BATCH_BYTES = 1 << 20  # of a snapshot
_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
_CONTROL_KEY = struct.Struct(">hh")  # version and type
_MAGIC = bytes((c.MAGIC_2,))


@attrs.frozen(order=True)
class SnapshotId:
    """The offset at which a snapshot ends, not included, and the epoch of the record before it."""

    offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        """The name of the snapshot's file."""
        return f"{offset_name(self.offset, '')}-{self.epoch:010d}{SNAPSHOT_SUFFIX}"

    @classmethod
    def parse(cls, name: str) -> SnapshotId | None:
        """The snapshot whose file is called `name`, None if it is no snapshot's."""
        match = _SNAPSHOT_NAME.fullmatch(name)
        return None if match is None else cls(int(match[1]), int(match[2]))


def segment_batches(path: Path, base_offset: int, *, is_last: bool) -> tuple[list[RecordBatch], int]:
    """The batches of a segment, and the bytes that they have.

    Of the last segment a batch that was not written to its end is left out: nobody was told of it. Raises
    KafkaStorageError for damage with batches behind it, and if the file cannot be read.
    """
    data = _content(path)
    batches: list[RecordBatch] = []
    position, offset = 0, base_offset
    while position < len(data):
        batch = _whole_batch(data, position)
        if batch is None or batch.base_offset != offset:
            if is_last and not _goes_on(data, position, offset):
                break
            raise KafkaStorageError(
                f"{path} is damaged at position {position}, where offset {offset} should be"
            )
        batches.append(batch)
        position += batch.size_in_bytes
        offset = batch.next_offset
    return batches, position


def snapshot_batches(path: Path) -> list[RecordBatch]:
    """The batches with metadata records in a snapshot. Raises KafkaStorageError if it is not whole."""
    batches, size = segment_batches(path, 0, is_last=False)
    edges = [_control_type(path, batch) for batch in (batches[0], batches[-1])] if batches else []
    if edges != [ControlRecordType.SNAPSHOT_HEADER, ControlRecordType.SNAPSHOT_FOOTER]:
        raise KafkaStorageError(
            f"{path} is not a whole snapshot: it has {size} bytes, and no header or no footer"
        )
    return [batch for batch in batches if not batch.is_control]


def metadata_records(path: Path, batch: RecordBatch) -> Iterator[Message]:
    """The records of a batch. Raises KafkaStorageError, naming what is not known."""
    try:
        for record in batch.records():
            yield decode_record(record.value)
    except KafkaError as error:
        raise KafkaStorageError(f"{path} at offset {batch.base_offset}: {error}") from error


def build_batch(records: Iterable[Message], base_offset: int, epoch: int, timestamp_ms: int) -> bytes:
    """The batch with these records. Raises as `encode_record` does."""
    builder = MemoryRecordsBuilder(base_offset=base_offset, partition_leader_epoch=epoch)
    for record in records:
        builder.append(timestamp_ms, None, encode_record(record))
    return builder.close()


def write_snapshot(
    directory: Path, snapshot: SnapshotId, records: Iterable[Message], contained_ms: int, now_ms: int
) -> None:
    """Write a snapshot of `records`, durably, and give it its name only then.

    `contained_ms` is the time of the last record of the log that it stands for. Raises OSError.
    """
    path = directory / snapshot.file_name
    part = path.with_name(path.name + ".part")
    with opened(part, _NEW) as fd:
        position = 0
        for batch in _snapshot_parts(snapshot.epoch, records, contained_ms, now_ms):
            write_all(fd, batch, position)
            position += len(batch)
        os.fsync(fd)
    part.replace(path)
    fsync_dir(directory)


def _snapshot_parts(
    epoch: int, records: Iterable[Message], contained_ms: int, now_ms: int
) -> Iterator[bytes]:
    header = SnapshotHeaderRecord(version=0, last_contained_log_timestamp=contained_ms)
    yield _control_batch(ControlRecordType.SNAPSHOT_HEADER, encode(header, 0), 0, epoch, now_ms)
    builder = MemoryRecordsBuilder(base_offset=1, partition_leader_epoch=epoch)
    for record in records:
        builder.append(now_ms, None, encode_record(record))
        if builder.uncompressed_size > _BATCH_BYTES:
            yield builder.close()
            builder = MemoryRecordsBuilder(base_offset=builder.next_offset, partition_leader_epoch=epoch)
    yield builder.close()
    footer = encode(SnapshotFooterRecord(version=0), 0)
    yield _control_batch(ControlRecordType.SNAPSHOT_FOOTER, footer, builder.next_offset, epoch, now_ms)


def _control_batch(kind: ControlRecordType, value: bytes, offset: int, epoch: int, now_ms: int) -> bytes:
    builder = MemoryRecordsBuilder(base_offset=offset, is_control=True, partition_leader_epoch=epoch)
    builder.append(now_ms, _CONTROL_KEY.pack(0, kind), value)
    return builder.close()


def _control_type(path: Path, batch: RecordBatch) -> ControlRecordType | None:
    try:
        return parse_type(next(batch.records()).key) if batch.is_control else None
    except (KafkaError, StopIteration) as error:
        raise KafkaStorageError(f"{path} has a broken control record: {error}") from error


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise KafkaStorageError(f"{path} cannot be read: {error}") from error


def _whole_batch(data: bytes, position: int) -> RecordBatch | None:
    """Return the batch that begins at `position`, None if there is none or it is not as it was written."""
    if len(data) - position < c.BATCH_OVERHEAD or data[position + c.MAGIC_AT] != c.MAGIC_2:
        return None
    try:
        batch = RecordBatch(memoryview(data)[position:])
    except CorruptRecordError:
        return None
    return batch if batch.last_offset_delta >= 0 and batch.is_valid else None


def _goes_on(data: bytes, position: int, offset: int) -> bool:
    """Return True if there is a batch behind `position` that was written after the one that should be there."""
    found = data.find(_MAGIC, position + c.MAGIC_AT + 1)
    while found >= 0:
        at = found - c.MAGIC_AT
        # Looked at first, as it costs nothing: a checksum for every such byte would.
        base = int.from_bytes(data[at : at + 8], "big")
        if offset < base <= offset + len(data) and _whole_batch(data, at) is not None:
            return True
        found = data.find(_MAGIC, found + 1)
    return False
