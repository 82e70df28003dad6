"""LogSegment: a piece of a log, as one file of batches with its indexes."""

from __future__ import annotations

import logging
import random
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from kclient.broker.log.abstract_index import CorruptIndexError
from kclient.broker.log.config import LogConfig
from kclient.broker.log.file_system import DISK, FileSystem
from kclient.broker.log.files import remove_if_present, segment_paths
from kclient.broker.log.offset_index import OffsetIndex
from kclient.broker.log.record_slice import RecordSlice
from kclient.broker.log.time_index import NO_TIMESTAMP, TimeIndex
from kclient.broker.log.transaction_index import TransactionIndex
from kclient.errors import CorruptRecordError, InvalidRecordError
from kclient.record import constants as c
from kclient.record.batch import RecordBatch
from kclient.record.open_files import OpenFiles
from kclient.utils.time import Time

log = logging.getLogger(__name__)

_INT_MAX = 2**31 - 1
_PREFIX = struct.Struct(">qi")  # base offset and length, the same in all formats
_LAST_DELTA = struct.Struct(">i")
_SCAN_BYTES = 1024 * 1024


class LogSegment:
    """One file of batches, from `base_offset` on, and its indexes.

    Changed under the log's lock. Reads need no lock, but a pin (`pin`, `unpin` under the log's lock) for
    their time: `close` of a pinned segment lets go of the file only when the last reader is done, because a
    read from a descriptor that is closed and opened again by someone else would return another file's bytes.
    """

    def __init__(
        self,
        directory: Path,
        base_offset: int,
        config: LogConfig,
        time: Time,
        files: OpenFiles,
        suffix: str = "",
        file_system: FileSystem = DISK,
    ) -> None:
        """Find the segment's files, or make them; their names end with `suffix`. Raises OSError."""
        self.base_offset = base_offset
        self._time = time
        self._index_interval_bytes = config.index_interval_bytes
        self._roll_jitter_ms = random.randint(0, min(config.segment_jitter_ms, config.segment_ms))
        log, index, time_index, txn_index = segment_paths(directory, base_offset, suffix)
        self._file_system = file_system
        self.records = file_system.open_records(log, files)
        self.offset_index = OffsetIndex(index, base_offset, config.segment_index_bytes, files, file_system)
        self.time_index = TimeIndex(time_index, base_offset, config.segment_index_bytes, files, file_system)
        self.txn_index = TransactionIndex(txn_index, file_system)
        self._created_ms = time.wall_ms()
        self._first_timestamp_ms: int | None = None
        self._max_timestamp: tuple[int, int] | None = None
        self._bytes_since_index_entry = 0
        self._index_lock = threading.Lock()
        # What comes from disk is trusted only once it was looked at, which can wait until it is needed.
        self._indexes_checked = self.records.size == 0
        self._pins = 0
        self._close_when_unpinned = False

    def __repr__(self) -> str:
        return f"LogSegment({self.base_offset}, {self.size} bytes)"

    @property
    def size(self) -> int:
        """Bytes of all batches."""
        return self.records.size

    @property
    def path(self) -> Path:
        """The file of batches."""
        return self.records.path

    @property
    def max_timestamp(self) -> tuple[int, int]:
        """The greatest timestamp and the last offset of the batch that has it, (-1, base offset) if there
        is none.
        """
        if self._max_timestamp is None:
            self._check_indexes()
            self._max_timestamp = self.time_index.last_entry
        return self._max_timestamp

    @property
    def largest_timestamp_ms(self) -> int:
        """The greatest timestamp of a record; the time of the last change of the file if no record has
        one.
        """
        timestamp_ms = self.max_timestamp[0]
        return timestamp_ms if timestamp_ms >= 0 else int(self.path.stat().st_mtime * 1000)

    @property
    def first_timestamp_ms(self) -> int:
        """The greatest timestamp of the first batch, -1 if there is none. Raises as `read`."""
        if self._first_timestamp_ms is None and self.size:
            first = next(iter(self.records.batch_headers(0)), None)
            self._first_timestamp_ms = NO_TIMESTAMP if first is None else first.max_timestamp_ms
        return NO_TIMESTAMP if self._first_timestamp_ms is None else self._first_timestamp_ms

    def append(self, data: bytes | bytearray | memoryview, batches: Sequence[RecordBatch]) -> None:
        """Write whole batches at the end, and index them. Raises OSError, and then nothing is written."""
        self._check_indexes()
        position = self.records.size
        max_timestamp = self.max_timestamp
        self.records.append(data)
        if position == 0 and batches:
            self._first_timestamp_ms = batches[0].max_timestamp_ms
        for batch in batches:
            last_offset, timestamp_ms, size = batch.last_offset, batch.max_timestamp_ms, batch.size_in_bytes
            if timestamp_ms > max_timestamp[0]:
                self._max_timestamp = max_timestamp = (timestamp_ms, last_offset)
            if self._bytes_since_index_entry > self._index_interval_bytes:
                self._add_index_entries(last_offset, position, max_timestamp)
            position += size
            self._bytes_since_index_entry += size

    def should_roll(self, config: LogConfig, size: int, max_timestamp_ms: int, last_offset: int) -> bool:
        """Return True if batches of `size` bytes have to go to a new segment."""
        reached = self._age_ms(max_timestamp_ms) > config.roll_ms - self._roll_jitter_ms
        return (
            self.size > config.segment_bytes - size
            or (self.size > 0 and reached)
            or self.offset_index.is_full
            or self.time_index.is_full
            or last_offset - self.base_offset > _INT_MAX
        )

    def read(
        self,
        start_offset: int,
        max_bytes: int,
        max_position: int,
        *,
        min_one_batch: bool,
        inline_bytes: int | None = None,
    ) -> tuple[int, memoryview | RecordSlice] | None:
        """The batches from the one that holds `start_offset`, or follows it, as (position, bytes).

        At most `max_bytes`, but with `min_one_batch` the first batch whole; nothing at or behind
        `max_position`; the last batch may be cut. More than `inline_bytes` are not read yet. None if the segment
        has no such offset. Raises `CorruptRecordError` for a damaged file and OSError.
        """
        self._check_indexes()
        position = self.offset_index.lookup(start_offset)[1]
        # One read that begins at the index's entry and is longer by what usually lies between that and the
        # batch, instead of reading header by header first.
        likely = 2 * self._index_interval_bytes + c.BATCH_OVERHEAD
        if inline_bytes is None or min(max_bytes, max_position - position - likely) <= inline_bytes:
            likely += max_bytes
        window = memoryview(self.records.read(position, min(likely, max_position - position)))
        at, batch_size = _locate(window, start_offset)
        if batch_size == 0:
            found = self.records.search_for_offset(start_offset, position + at)
            if found is None or found.position >= max_position:
                return None
            at, batch_size = found.position - position, found.size
        wanted = max(max_bytes, batch_size) if min_one_batch else max_bytes
        wanted = min(wanted, max_position - position - at)
        start = position + at
        if inline_bytes is not None and wanted > inline_bytes:
            return start, RecordSlice(self.records.file, start, wanted, batch_size)
        if at + min(wanted, batch_size) > len(window):
            return start, memoryview(self.records.read(start, wanted))
        return start, window[at : at + wanted]

    def position_of(self, offset: int) -> int | None:
        """Return the position of the first batch that reaches `offset`, None if none does.

        Raises as `read` does.
        """
        self._check_indexes()
        found = self.records.search_for_offset(offset, self.offset_index.lookup(offset)[1])
        return None if found is None else found.position

    def offset_for_timestamp(self, timestamp_ms: int, starting_offset: int) -> tuple[int, int, int] | None:
        """Timestamp, offset and epoch of the first record from `starting_offset` on that is not before the
        time.
        """
        self._check_indexes()
        _, offset = self.time_index.lookup(timestamp_ms)
        position = self.offset_index.lookup(max(offset, starting_offset))[1]
        found = self.records.search_for_timestamp(timestamp_ms, position, starting_offset)
        return None if found is None else (found.timestamp_ms, found.offset, found.leader_epoch)

    def next_offset(self) -> int:
        """The offset after the last batch, `base_offset` if there is none. Raises as `read`."""
        self._check_indexes()
        last = self.base_offset
        for header in self.records.batch_headers(self.offset_index.lookup(2**63 - 1)[1]):
            last = header.next_offset
        return last

    def recover(self, visit: Callable[[RecordBatch], None]) -> int:
        """Walk all batches with their checksums, rebuild the indexes, and cut the file at the first bad byte.

        `visit` gets every good batch, in order, and fills the transaction index. Returns how many bytes were
        cut off. Raises OSError.
        """
        self._reset_indexes()
        self.txn_index.reset()
        valid = 0
        next_offset = self.base_offset
        try:
            for position, batch in self.batches():
                batch.ensure_valid()
                if batch.base_offset < next_offset or batch.last_offset - self.base_offset > _INT_MAX:
                    raise CorruptRecordError(f"{self.path.name}: offset {batch.base_offset} is out of order")
                self._index(position, batch.last_offset, batch.max_timestamp_ms)
                visit(batch)
                next_offset = batch.last_offset + 1
                valid = position + batch.size_in_bytes
                self._bytes_since_index_entry += batch.size_in_bytes
        except (CorruptRecordError, InvalidRecordError) as error:
            log.warning("%s is cut off at %d of %d bytes: %s", self.path, valid, self.size, error)
        cut = self.size - valid
        if cut:
            self.records.truncate_to(valid)
        self._append_last_time_entry()
        self._indexes_checked = True
        return cut

    def batches(self, position: int = 0) -> Iterator[tuple[int, RecordBatch]]:
        """The batches from `position` on with their positions, read in large pieces.

        Raises `CorruptRecordError` where the file is damaged and OSError.
        """
        end = self.size
        wanted = _SCAN_BYTES
        while position < end:
            window = memoryview(bytearray(self.records.read(position, min(wanted, end - position))))
            at = 0
            while len(window) - at >= c.LOG_OVERHEAD:
                size = _batch_size(window, at)
                if size > end - position - at:
                    raise CorruptRecordError(f"{self.path.name} ends within the batch at {position + at}")
                if size > len(window) - at:
                    break
                yield position + at, RecordBatch(window[at : at + size])
                at += size
            if at == 0 and end - position < c.LOG_OVERHEAD:
                raise CorruptRecordError(f"{self.path.name} ends within a header at {position}")
            # A batch larger than the piece is the next piece.
            wanted = max(_SCAN_BYTES, _batch_size(window, 0)) if at == 0 else _SCAN_BYTES
            position += at

    def rebuild_indexes(self) -> None:
        """Build both indexes from the batches' headers. Raises `CorruptRecordError` and OSError."""
        self._reset_indexes()
        for header in self.records.batch_headers(0):
            self._index(header.position, header.last_offset, header.max_timestamp_ms)
            self._bytes_since_index_entry += header.size_in_bytes
        self._append_last_time_entry()
        self._indexes_checked = True

    def truncate_to(self, offset: int) -> int:
        """Cut off the batch that holds `offset` and all after it; returns the bytes cut. Raises as `read`."""
        position = self.position_of(offset)
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.txn_index.truncate_to(offset)
        cut = 0
        if position is not None:
            cut = self.size - position
            self.records.truncate_to(position)
        if self.size == 0:
            self._created_ms = self._time.wall_ms()
            self._first_timestamp_ms = None
        self._bytes_since_index_entry = self.size - self.offset_index.lookup(offset)[1]
        self._max_timestamp = self.time_index.last_entry
        # The greatest timestamp may belong to a batch behind the last index entry.
        for header in self.records.batch_headers(self.offset_index.lookup(self._max_timestamp[1])[1]):
            if header.max_timestamp_ms > self._max_timestamp[0]:
                self._max_timestamp = (header.max_timestamp_ms, header.last_offset)
        return cut

    def become_inactive(self) -> None:
        """Another segment takes the appends now: finish the indexes. Raises OSError."""
        self.records.trim()
        self._append_last_time_entry()
        self.offset_index.seal()
        self.time_index.seal()

    def write_indexes(self) -> None:
        """Write what the indexes hold only in memory. Call under the log's lock; raises OSError."""
        self.offset_index.write_pending()
        self.time_index.write_pending()

    def flush(self) -> None:
        """Force batches and indexes, as written so far, to disk. Raises OSError."""
        self.records.flush()
        for index in (self.offset_index, self.time_index):
            index.sync()
        self.txn_index.flush()

    def change_suffix(self, old: str, new: str) -> None:
        """Rename all files, such as from `.log` to `.log.deleted`. Raises OSError."""
        try:
            # Now, for a reader may still come who has the segment pinned, and then the files have other
            # names.
            self._check_indexes()
        except CorruptRecordError as error:
            log.warning("%s: %s", self.path, error)
        # All that needs a descriptor comes first: there may be none left.
        for index in (self.offset_index, self.time_index):
            index.load()
        for part in (self.records, self.offset_index, self.time_index, self.txn_index):
            name = part.path.name
            part.rename(part.path.with_name(name.removesuffix(old) + new))

    def pin(self) -> None:
        """Keep the file open until `unpin`. Call under the log's lock."""
        self._pins += 1

    def unpin(self) -> None:
        """The reader is done. Call under the log's lock."""
        self._pins -= 1
        if self._pins == 0 and self._close_when_unpinned:
            self._let_go()

    def close(self) -> None:
        """Write the indexes and close the file (when the last reader is done). Raises OSError."""
        try:
            if self._indexes_checked:
                self._append_last_time_entry()
            self.write_indexes()
            self.records.trim()
        finally:
            self.close_files()

    def close_files(self, *, removing: bool = False) -> None:
        """Close the file (when the last reader is done) and forget what is not written.

        With `removing` the file will have another name or none: slices of it can still be read.
        """
        if removing:
            try:
                self.records.file.outlive_removal(in_use=self._pins > 0)
            except OSError as error:
                log.warning("%s: answers that are on their way are cut off: %s", self.path, error)
        if self._pins:
            self._close_when_unpinned = True
        else:
            self._let_go()

    def delete_files(self) -> None:
        """Remove all files of a closed segment; slices of it can still be read. Raises OSError."""
        self.records.file.outlive_removal(in_use=self._pins > 0)
        self._file_system.remove(self.path)
        self.offset_index.delete()
        self.time_index.delete()
        self.txn_index.delete()

    def release_indexes(self) -> None:
        """Let go of the memory of the indexes, which are written."""
        self.offset_index.release()
        self.time_index.release()

    def _let_go(self) -> None:
        self.release_indexes()
        self.records.close()

    def _age_ms(self, now_or_timestamp_ms: int) -> int:
        """Return the age of the segment: by record time if its records have any, else by the clock."""
        first_timestamp_ms = self.first_timestamp_ms
        if first_timestamp_ms >= 0 and now_or_timestamp_ms >= 0:
            return now_or_timestamp_ms - first_timestamp_ms
        return self._time.wall_ms() - self._created_ms

    def _index(self, position: int, last_offset: int, max_timestamp_ms: int) -> None:
        if self._max_timestamp is None or max_timestamp_ms > self._max_timestamp[0]:
            self._max_timestamp = (max_timestamp_ms, last_offset)
        if self._bytes_since_index_entry > self._index_interval_bytes:
            self._add_index_entries(last_offset, position, self._max_timestamp)

    def _add_index_entries(self, last_offset: int, position: int, max_timestamp: tuple[int, int]) -> None:
        self.offset_index.append(last_offset, position)
        self.time_index.maybe_append(*max_timestamp)
        self._bytes_since_index_entry = 0

    def _append_last_time_entry(self) -> None:
        if self._max_timestamp is not None and self._max_timestamp[0] >= 0:
            self.time_index.maybe_append(*self._max_timestamp)

    def _reset_indexes(self) -> None:
        self.offset_index.reset()
        self.time_index.reset()
        self._max_timestamp = None
        self._bytes_since_index_entry = 0

    def _check_indexes(self) -> None:
        if not self._indexes_checked:
            self._check_indexes_once()

    def _check_indexes_once(self) -> None:
        # Of several readers of a segment that was not read since the start, one checks, the others wait.
        with self._index_lock:
            if self._indexes_checked:
                return
            try:
                self.offset_index.validate()
                self.time_index.validate()
                self._check_last_entries()
            except CorruptIndexError as error:
                log.warning("Rebuilding the indexes of %s: %s", self.path, error)
                self.rebuild_indexes()
            self._indexes_checked = True

    def _check_last_entries(self) -> None:
        """Compare the last entries with the log: garbage that happens to be in order is not found
        otherwise.
        """
        index = self.offset_index
        exists = self._file_system.exists
        if not exists(self.time_index.path) or not exists(index.path):
            raise CorruptIndexError(f"An index of {self.path.name} is missing")
        indexed_offset, start = index.entry(index.entries - 1) if index.entries else (None, 0)
        if start >= self.size:
            raise CorruptIndexError(f"{index.path.name} points behind the end of its log")
        last = None
        try:
            for last in self.records.batch_headers(start):
                if last.position == start:
                    if indexed_offset not in (None, last.last_offset):
                        break
                elif last.position - start > self._index_interval_bytes:
                    raise CorruptIndexError(f"{index.path.name} lacks an entry for {last.position}")
        except CorruptRecordError as error:
            raise CorruptIndexError(f"{index.path.name} does not match its log at {start}") from error
        if last is None or (last.position == start and indexed_offset not in (None, last.last_offset)):
            raise CorruptIndexError(f"{index.path.name} does not match its log at {start}")
        # The greatest timestamp is entered when a segment is closed or rolled, so the end of the log is
        # covered.
        timestamp_ms, timestamp_offset = self.time_index.last_entry
        if last.max_timestamp_ms > timestamp_ms or timestamp_offset > last.last_offset:
            raise CorruptIndexError(f"{self.time_index.path.name} does not match its log")
        self._bytes_since_index_entry = self.size - start


def close_for_deletion(
    segments: Sequence[LogSegment], snapshots: Sequence[Path | None]
) -> Callable[[], None]:
    """Close segments that left their log (under its lock); call the result later to remove their files.

    Readers that have a segment pinned keep its file open until they are done.
    """
    for segment in segments:
        segment.close_files()

    def delete() -> None:
        for segment in segments:
            segment.delete_files()
        for path in snapshots:
            if path is not None:
                remove_if_present(path)

    return delete


def _batch_size(window: memoryview, at: int) -> int:
    """Size of the batch at `at`, checked to be at least that of its header."""
    size: int = _PREFIX.unpack_from(window, at)[1] + c.LOG_OVERHEAD
    if size < c.BATCH_OVERHEAD:
        raise CorruptRecordError(f"A batch of {size} bytes is smaller than its own header")
    return size


def _locate(window: memoryview, offset: int) -> tuple[int, int]:
    """Return the position in `window` of the first batch that reaches `offset`, and the batch's size.

    The size is 0 if that batch is not in `window`: it can only begin at the returned position or later.
    """
    at = 0
    while at + c.BATCH_OVERHEAD <= len(window):
        base, length = _PREFIX.unpack_from(window, at)
        if length < c.BATCH_OVERHEAD - c.LOG_OVERHEAD:
            raise CorruptRecordError(
                f"A batch of {length + c.LOG_OVERHEAD} bytes is smaller than its own header"
            )
        if base + _LAST_DELTA.unpack_from(window, at + c.LAST_OFFSET_DELTA_AT)[0] >= offset:
            return at, length + c.LOG_OVERHEAD
        at += length + c.LOG_OVERHEAD
    return at, 0
