"""MetadataLog: everything the controller has decided, as records on disk, in the form of Kafka's metadata log.

A change is one batch: it is there wholly after a crash or not at all, and on disk before anybody is told of it. A
snapshot stands for all records before its offset; then the segments before it are removed. There are no indexes, as
nobody reads the log from the middle.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import attrs

from kclient.broker.log.files import (
    LOG_SUFFIX,
    TMP_SUFFIX,
    atomic_write,
    fsync_dir,
    offset_name,
    parse_offset_name,
)
from kclient.broker.metadata.metadata_files import (
    PART_SUFFIX,
    SnapshotId,
    build_batch,
    metadata_records,
    segment_batches,
    snapshot_batches,
    write_snapshot,
)
from kclient.errors import KafkaStorageError
from kclient.protocol.schema import Message
from kclient.record.file_records import FileRecords
from kclient.utils.time import Time

log = logging.getLogger(__name__)

_NO_EPOCH = -1
_NO_TIMESTAMP = -1


@attrs.frozen
class _Segment:
    base_offset: int
    path: Path


class MetadataLog:
    """The log in `directory`. Used by one thread at a time.

    First `read`, which changes nothing on disk; then `start`, after which records may be appended. Everything raises
    KafkaStorageError when the disk fails, and for files that are damaged or of something newer.
    """

    def __init__(self, directory: Path, time: Time) -> None:
        self.directory = directory
        self._time = time
        self._end_offset = 0
        self._epoch = _NO_EPOCH
        self._last_timestamp_ms = _NO_TIMESTAMP
        self._snapshot: SnapshotId | None = None
        self._bytes_since_snapshot = 0
        self._segments: list[_Segment] = []
        self._active: FileRecords | None = None
        # Of the last segment, up to where its batches are whole.
        self._valid_bytes = 0
        self._valid_offset = 0
        self._usable = False

    @property
    def end_offset(self) -> int:
        """The offset that the next record will get."""
        return self._end_offset

    @property
    def epoch(self) -> int:
        """The epoch of the controller that appends; before `start` that of the last record, -1 for none."""
        return self._epoch

    @property
    def bytes_since_snapshot(self) -> int:
        """Bytes of the records that no snapshot stands for."""
        return self._bytes_since_snapshot

    def read(self) -> Iterator[list[Message]]:
        """Yield the records of each batch: those of the newest snapshot, then those behind it."""
        snapshots, segments = self._files()
        if snapshots:
            self._snapshot = newest = max(snapshots)
            path = self.directory / newest.file_name
            for batch in snapshot_batches(path):
                yield list(metadata_records(path, batch))
            self._end_offset, self._epoch = newest.offset, newest.epoch
        # A segment that ends before the snapshot's offset was not yet removed.
        while len(segments) > 1 and segments[1].base_offset <= self._end_offset:
            segments.pop(0)
        self._segments = segments
        for segment in segments:
            yield from self._read_segment(segment, is_last=segment is segments[-1])

    def start(self) -> None:
        """Cut off what is not whole, begin a new epoch and take records from now on."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            for path in self.directory.iterdir():
                if path.name.endswith((TMP_SUFFIX, PART_SUFFIX)):
                    path.unlink()
            last = self._segments[-1] if self._segments else None
            # Records that a snapshot stands for may be gone from the log: what follows goes to a segment of its own.
            if last is not None and self._valid_offset == self._end_offset:
                self._active = FileRecords.open(last.path)
                if self._active.truncate_to(self._valid_bytes):
                    log.warning("%s ends in the middle of a change, which is left out", last.path)
                    self._active.flush()
            fsync_dir(self.directory.parent)
        except OSError as error:
            raise self._failure(error) from error
        self._epoch += 1
        self._usable = True

    def append(self, records: Sequence[Message]) -> int:
        """Append records as one batch, durably; returns the offset after the last.

        Nothing is written if it fails. After a failure that could not be undone the log takes no more records.
        """
        if not self._usable:
            raise KafkaStorageError(f"{self.directory} takes no changes until the next start")
        now_ms = self._time.wall_ms()
        batch = build_batch(records, self._end_offset, self._epoch, now_ms)
        try:
            self._write(batch)
        except OSError as error:
            raise self._failure(error) from error
        self._end_offset += len(records)
        self._bytes_since_snapshot += len(batch)
        self._last_timestamp_ms = now_ms
        return self._end_offset

    def write_snapshot(self, records: Iterable[Message]) -> None:
        """Let `records` stand for all that was appended, and remove what they stand for."""
        made = SnapshotId(self._end_offset, self._epoch)
        try:
            write_snapshot(self.directory, made, records, self._last_timestamp_ms, self._time.wall_ms())
        except OSError as error:
            raise self._failure(error) from error
        self._snapshot, self._bytes_since_snapshot = made, 0
        self._close_active()
        try:
            snapshots, segments = self._files()
            for path in [segment.path for segment in segments] + [
                self.directory / one.file_name for one in snapshots if one != made
            ]:
                path.unlink()
            fsync_dir(self.directory)
        except OSError as error:
            log.warning(
                "%s: what the snapshot at %d stands for is still there: %s",
                self.directory,
                made.offset,
                error,
            )

    def close(self) -> None:
        """Take no more records. Idempotent."""
        self._usable = False
        self._close_active()

    def _files(self) -> tuple[list[SnapshotId], list[_Segment]]:
        """Return the snapshots, and the segments in order."""
        snapshots, segments = [], []
        try:
            for path in self.directory.iterdir():
                snapshot = SnapshotId.parse(path.name)
                segment = parse_offset_name(path.name)
                if snapshot is not None:
                    snapshots.append(snapshot)
                elif segment is not None and segment[1] == LOG_SUFFIX:
                    segments.append(_Segment(segment[0], path))
        except FileNotFoundError:
            pass
        except OSError as error:
            raise KafkaStorageError(f"{self.directory} cannot be read: {error}") from error
        return snapshots, sorted(segments, key=lambda segment: segment.base_offset)

    def _read_segment(self, segment: _Segment, *, is_last: bool) -> Iterator[list[Message]]:
        batches, self._valid_bytes = segment_batches(segment.path, segment.base_offset, is_last=is_last)
        self._valid_offset = batches[-1].next_offset if batches else segment.base_offset
        for batch in batches:
            if batch.last_offset < self._end_offset:
                continue  # a snapshot stands for it
            self._check_next(batch.base_offset)
            if not batch.is_control:
                yield list(metadata_records(segment.path, batch))
            self._end_offset, self._epoch = batch.next_offset, batch.partition_leader_epoch
            self._last_timestamp_ms = batch.max_timestamp_ms
            self._bytes_since_snapshot += batch.size_in_bytes
        if segment.base_offset > self._end_offset:
            self._check_next(segment.base_offset)

    def _check_next(self, offset: int) -> None:
        if offset != self._end_offset:
            raise KafkaStorageError(f"{self.directory} goes on at offset {offset} behind {self._end_offset}")

    def _write(self, batch: bytes) -> None:
        active = self._active
        if active is None:
            # Whole or not there: an empty or half file could not be told from one that lost its records.
            path = self.directory / offset_name(self._end_offset, LOG_SUFFIX)
            try:
                atomic_write(path, batch)
            except OSError:
                with suppress(OSError):
                    path.unlink()
                raise
            self._active = FileRecords.open(path)
            return
        size = active.size
        try:
            active.append(batch)
            active.flush()
        except OSError:
            try:
                active.truncate_to(size)
            except OSError:
                log.exception(
                    "%s cannot be cut back: nothing can be changed until the next start", active.path
                )
                self._usable = False
            raise

    def _failure(self, error: OSError) -> KafkaStorageError:
        return KafkaStorageError(f"{self.directory} cannot be written: {error}")

    def _close_active(self) -> None:
        if self._active is not None:
            self._active.close()
            self._active = None
