"""The batches in a segment file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

import attrs

from kclient.errors import CorruptRecordError, IllegalStateError
from kclient.record import constants as c
from kclient.record.batch import RecordBatch
from kclient.record.legacy import LegacyBatch
from kclient.record.memory_records import Batch, BatchHeader, Buffer, batch_size, parse_header
from kclient.record.open_files import OpenFiles, SharedFile

# Most systems take 1024 buffers in one call.
_MOST_BUFFERS = 1024


@attrs.frozen
class FoundOffset:
    """A batch that holds an offset: where it is, its size in bytes, its last offset."""

    position: int
    size: int
    last_offset: int


@attrs.frozen
class FoundTimestamp:
    """A record that is not older than asked for; `leader_epoch` is -1 if it is not known."""

    timestamp_ms: int
    offset: int
    leader_epoch: int


class FileRecords:
    """Batches back to back in a file.

    One thread at a time may change the file (`append`, `truncate_to`, `rename`, `close`); any number may read
    meanwhile, and see what was appended before. Errors of the system come as OSError. Used after `close`, raises
    IllegalStateError.
    """

    __slots__ = ("_closed", "_file", "_preallocated", "_size")

    def __init__(self, file: SharedFile, size: int) -> None:
        self._file = file
        self._size = size
        self._closed = False
        self._preallocated = False

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], *, writable: bool = True, files: OpenFiles | None = None
    ) -> Self:
        """Open the file at `path`; a writable one is created if it is not there. Raises OSError.

        As one of many `files` it is open when it is used, and as long as they are not too many.
        """
        # Not O_APPEND: that would ignore the positions of writes.
        file = SharedFile(
            OpenFiles(1) if files is None else files,
            Path(path),
            os.O_RDWR | os.O_CREAT if writable else os.O_RDONLY,
        )
        try:
            size = os.stat(path).st_size
        except FileNotFoundError:
            with file:  # made, or found to be missing
                size = 0
        # Whoever opens it again means this file, and not a new one in its place.
        file.flags &= ~os.O_CREAT
        return cls(file, size)

    @property
    def path(self) -> Path:
        """The path of the file."""
        return self._file.path

    @property
    def file(self) -> SharedFile:
        """The file itself, for those who read from it at positions that they know."""
        return self._file

    @property
    def size(self) -> int:
        """Bytes in the file."""
        return self._size

    def append(self, buffers: Buffer | Sequence[Buffer]) -> int:
        """Write whole batches behind the last and return the position of the first byte.

        All or nothing: if not all can be written, what was is cut off again and OSError raised.
        """
        if isinstance(buffers, bytes | bytearray | memoryview):
            buffers = (buffers,)
        views = [memoryview(buffer) for buffer in buffers]
        position = end = self._size
        with self._usable() as fd:
            try:
                while views:
                    written = os.pwritev(fd, views[:_MOST_BUFFERS], end)
                    end += written
                    while views and written >= len(views[0]):
                        written -= len(views.pop(0))
                    if written:
                        views[0] = views[0][written:]
            except BaseException:
                os.ftruncate(fd, position)
                raise
        self._size = end
        return position

    def read(self, position: int, size: int) -> bytes:
        """Up to `size` bytes from `position` on; fewer at the end of the file."""
        size = min(size, self._size - position)
        if position < 0 or size <= 0:
            return b""
        with self._usable() as fd:
            data = os.pread(fd, size, position)
            # A read of gigabytes comes in parts.
            while len(data) < size:
                more = os.pread(fd, size - len(data), position + len(data))
                if not more:
                    break
                data += more
        return data

    def batch_headers(self, position: int = 0) -> Iterator[BatchHeader]:
        """The headers of the batches from `position` on, without reading the rest of them.

        A batch cut off at the end is left out. Raises CorruptRecordError where the next one cannot be found.
        """
        while True:
            head = self.read(position, c.BATCH_OVERHEAD)
            if len(head) < c.HEADER_UP_TO_MAGIC:
                return
            size, _ = batch_size(head, f" at position {position} of {self.path}")
            if size > self._size - position:
                return
            yield parse_header(head[:size], position)
            position += size

    def batch(self, header: BatchHeader) -> Batch:
        """All of the batch with this header, as a copy in memory."""
        data = self.read(header.position, header.size_in_bytes)
        if len(data) < header.size_in_bytes:
            raise CorruptRecordError(f"{self.path} ends in the batch at position {header.position}.")
        view = memoryview(data)
        return RecordBatch(view) if header.magic == c.MAGIC_2 else LegacyBatch(view)

    def search_for_offset(self, target: int, position: int = 0) -> FoundOffset | None:
        """The first batch from `position` on whose last offset is `target` or later."""
        for header in self.batch_headers(position):
            if header.last_offset >= target:
                return FoundOffset(header.position, header.size_in_bytes, header.last_offset)
        return None

    def search_for_timestamp(
        self,
        target_ms: int,
        position: int = 0,
        from_offset: int = 0,
        max_bytes: int = c.DEFAULT_DECOMPRESS_MAX_BYTES,
    ) -> FoundTimestamp | None:
        """The first record, from `position` and `from_offset` on, whose timestamp is `target_ms` or later."""
        for header in self.batch_headers(position):
            if header.max_timestamp_ms < target_ms or header.last_offset < from_offset:
                continue
            for record in self.batch(header).records(max_bytes):
                if record.timestamp_ms >= target_ms and record.offset >= from_offset:
                    return FoundTimestamp(record.timestamp_ms, record.offset, header.partition_leader_epoch)
        return None

    def truncate_to(self, size: int) -> int:
        """Cut the file to `size` bytes; how many went. Raises ValueError if it has fewer."""
        if not 0 <= size <= self._size:
            raise ValueError(f"{self.path} has {self._size} bytes and cannot be truncated to {size}")
        removed = self._size - size
        if removed:
            with self._usable() as fd:
                os.ftruncate(fd, size)
            self._size = size
        return removed

    def preallocate(self, size: int) -> None:
        """Give the file `size` bytes, of which those that are not written yet are zeros until `trim`."""
        with self._usable() as fd:
            os.ftruncate(fd, max(size, self._size))
        self._preallocated = True

    def trim(self) -> None:
        """Cut off what was preallocated and is not written."""
        if self._preallocated:
            with self._usable() as fd:
                os.ftruncate(fd, self._size)
            self._preallocated = False

    def flush(self) -> None:
        """Have the system put what was appended on the disk."""
        with self._usable() as fd:
            os.fdatasync(fd)

    def rename(self, path: str | os.PathLike[str]) -> None:
        """Move the file, over another one if need be; the caller syncs the directory."""
        self._file.rename(Path(path))

    def close(self) -> None:
        """Close the file without flushing it. Idempotent."""
        self._closed = True
        self._file.close()

    def _usable(self) -> SharedFile:
        if self._closed:
            raise IllegalStateError(f"{self.path} is closed.")
        return self._file

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"FileRecords({str(self.path)!r}, {self._size} bytes)"


class FileRecordsView(FileRecords):
    """Batches in a file that stays as it is: what is cut off is not seen any more, and nothing can be appended."""

    __slots__ = ()

    def truncate_to(self, size: int) -> int:
        if not 0 <= size <= self._size:
            raise ValueError(f"{self.path} has {self._size} bytes and cannot be truncated to {size}")
        removed, self._size = self._size - size, size
        return removed
