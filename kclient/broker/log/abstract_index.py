"""The base of the offset index and the time index: entries of fixed size, searched by bisection.

An index holds nothing that its log does not: it is rebuilt whenever there is doubt. So entries of the active
segment are kept in memory and written when the index is flushed (before the recovery point passes them) or
sealed; a crash loses the rest, and recovery walks that part of the log anyway. Nothing is preallocated, so a
full disk shows as an error of a write and not, as with a mapped sparse file, as SIGBUS. A sealed index is
mapped read-only when it is used, and as long as not too many files are open.
"""

from __future__ import annotations

import mmap
from pathlib import Path

from kclient.broker.log.file_system import DISK, FileSystem
from kclient.record.open_files import OpenFiles

Content = bytearray | bytes | mmap.mmap
"""The entries: to be added to, as memory has them, or as the file does."""


class CorruptIndexError(Exception):
    """An index file cannot be what was written: rebuild it from its log."""


class AbstractIndex:
    """A file of entries of `ENTRY_SIZE` bytes for one segment.

    One thread changes it at a time (the log's lock); other threads may look up concurrently: entries are only
    added at the end, and a lookup takes its view of the buffer and the count once.
    """

    ENTRY_SIZE: int

    __slots__ = (
        "_buffer",
        "_file_system",
        "_files",
        "_size",
        "_written",
        "base_offset",
        "max_bytes",
        "path",
        "sealed",
    )

    def __init__(
        self,
        path: Path,
        base_offset: int,
        max_bytes: int,
        files: OpenFiles | None = None,
        file_system: FileSystem = DISK,
    ) -> None:
        self._files = OpenFiles(1) if files is None else files
        self._file_system = file_system
        self.path = path
        self.sealed = False
        """True while no entries are expected to come."""
        self.base_offset = base_offset
        self.max_bytes = max_bytes - max_bytes % self.ENTRY_SIZE
        self._buffer: Content | None = None
        self._written = 0
        try:
            self._size = file_system.size(path)
        except FileNotFoundError:
            self._buffer = bytearray()
            self._size = 0
        else:
            self._written = self._size

    @property
    def entries(self) -> int:
        """The number of entries."""
        return self._size // self.ENTRY_SIZE

    @property
    def size_in_bytes(self) -> int:
        """Bytes of all entries, written to the file or not yet."""
        return self._size

    @property
    def is_full(self) -> bool:
        """True when the limit is reached and the segment has to be rolled."""
        return self._size >= self.max_bytes

    def validate(self) -> None:
        """Check everything that can be checked without the log; raises `CorruptIndexError`."""
        if self._size % self.ENTRY_SIZE:
            raise CorruptIndexError(
                f"{self.path.name} has {self._size} bytes, no multiple of {self.ENTRY_SIZE}"
            )
        self._validate_entries(self._view())

    def sync(self) -> None:
        """Force what `write_pending` wrote to disk. Needs no lock; raises OSError."""
        self._file_system.sync(self.path)  # the log may have deleted or renamed it meanwhile

    def write_pending(self) -> None:
        """Write what is only in memory to the file. Raises OSError."""
        if self._written == self._size and self._file_system.exists(self.path):
            return
        added = self._written < self._size
        pending = bytes(self._view()[self._written : self._size]) if added else b""
        self._file_system.write(self.path, pending, self._written)
        self._written = self._size

    def seal(self) -> None:
        """The segment takes no more entries: write them and give the memory back. Raises OSError."""
        self.write_pending()
        self.release()
        self.sealed = True

    def reset(self) -> None:
        """Drop all entries, also those of the file, to build the index anew. Raises OSError."""
        self._replace(b"")

    def release(self) -> None:
        """Let go of the memory without writing."""
        self._files.forget(self)
        # A mapping is not closed here but by its last reference: another thread may be looking up in it.
        self._buffer = None

    def drop(self) -> None:
        """Let go of the mapping; the next lookup makes it again. For `OpenFiles`."""
        self._buffer = None

    def load(self) -> None:
        """Have all in memory until `release`: readers who come later need no file any more. Raises OSError."""
        self.write_pending()
        self._view()
        self._files.forget(self)

    def rename(self, path: Path) -> None:
        """Give the file another name. Raises OSError."""
        self.load()
        self._file_system.replace(self.path, path)
        self.path = path

    def delete(self) -> None:
        """Remove the file if it is there; a reader keeps what is loaded. Raises OSError."""
        self._file_system.remove(self.path)

    def _validate_entries(self, view: Content) -> None:
        raise NotImplementedError

    def _view(self) -> Content:
        buffer = self._buffer
        if buffer is None:
            try:
                buffer = self._map()
            except FileNotFoundError:
                # Renamed between our look at the path and the opening; then it was loaded before (see
                # `rename`).
                buffer = self._buffer
                if buffer is None:
                    raise
            if self._buffer is not None:
                return self._buffer  # somebody was quicker, and may have added to it
            self._buffer = buffer
            if isinstance(buffer, mmap.mmap):
                self._files.keep(self)
        return buffer

    def _map(self) -> Content:
        if self._size == 0:
            return bytearray()
        if not self.sealed:
            return bytearray(self._file_system.read(self.path)[: self._size])
        return self._file_system.map(self.path, self._size)

    def _append(self, entry: bytes) -> None:
        buffer = self._view()
        if not isinstance(buffer, bytearray):
            self._files.forget(self)
            buffer = bytearray(buffer[: self._size])
            self._buffer = buffer
        self.sealed = False
        buffer += entry
        # Last: a concurrent lookup sees the entry only when it is complete.
        self._size += self.ENTRY_SIZE

    def _truncate_to_entries(self, count: int) -> None:
        if count < self.entries:
            self._replace(bytes(self._view()[: count * self.ENTRY_SIZE]))

    def _replace(self, kept: bytes) -> None:
        self._files.forget(self)
        self.sealed = False
        # A new buffer, so that a lookup going on in the old one is not disturbed.
        self._buffer = bytearray(kept)
        self._size = len(kept)
        self._written = min(self._written, self._size)
        # At once, not with the next flush: after a crash in between, entries of what was cut off would come back and
        # point into other records.
        self._file_system.write(self.path, kept[self._written :], self._written, self._size)
        self._written = self._size
