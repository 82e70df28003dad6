"""Files that are open only while there is use for them, so that there can be more of them than descriptors."""

from __future__ import annotations

import errno
import os
import threading
import weakref
from collections import OrderedDict
from pathlib import Path
from typing import Protocol

OUT_OF_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE})
"""Errors of a process or a system that can open no more files: no file is to blame."""


class Mapping(Protocol):
    """A file in memory, which holds a descriptor as long as there is the mapping."""

    def drop(self) -> None:
        """Let go of the mapping; it is made again when it is needed."""


class OpenFiles:
    """The files that are kept open, `limit` at most but for those in use; the one unused for longest goes first.

    A file that is mapped into memory is one of them, and its age counts from then. Thread-safe.
    """

    __slots__ = ("_count", "_idle", "_limit", "_lock")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        # Reentrant: the collector may end a file that is held open in the middle of any of this.
        self._lock = threading.RLock()
        self._count = 0
        self._idle: OrderedDict[SharedFile | Mapping, None] = OrderedDict()

    @property
    def count(self) -> int:
        """Number of files that are open."""
        return self._count

    def open_and_enter(self, file: SharedFile) -> int:
        """Do what `SharedFile.__enter__` does."""
        with self._lock:
            if file.fd < 0:
                file.fd = self._open(file)
                self._count += 1
            elif file.users == 0:
                del self._idle[file]
            file.users += 1
            return file.fd

    def leave(self, file: SharedFile) -> None:
        """Do what `SharedFile.__exit__` does."""
        with self._lock:
            file.users -= 1
            if file.users:
                return
            if file.closed:
                self._close(file)
                return
            self._idle[file] = None
            self._shrink(self._limit)

    def close(self, file: SharedFile) -> None:
        """Do what `SharedFile.close` does."""
        with self._lock:
            file.closed = True
            if file.fd >= 0 and file.users == 0:
                del self._idle[file]
                self._close(file)

    def rename(self, file: SharedFile, path: Path) -> None:
        """Do what `SharedFile.rename` does."""
        with self._lock:
            os.replace(file.path, path)
            file.path = path

    def keep(self, mapping: Mapping) -> None:
        """There is a mapping, which may be dropped from now on."""
        with self._lock:
            if mapping not in self._idle:
                self._idle[mapping] = None
                self._count += 1
                self._shrink(self._limit)

    def forget(self, mapping: Mapping) -> None:
        """The mapping is gone, or must not be dropped any more."""
        with self._lock:
            if mapping in self._idle:
                del self._idle[mapping]
                self._count -= 1

    def close_unused(self) -> None:
        """Close all that are not in use: the process has no descriptors left."""
        with self._lock:
            self._shrink(0)

    def end(self, file: SharedFile) -> None:
        """Close the file, which nobody can use any more."""
        with self._lock:
            if file.fd >= 0:
                self._close(file)

    def _open(self, file: SharedFile) -> int:
        self._shrink(self._limit - 1)
        while True:
            try:
                return os.open(file.path, file.flags, 0o644)
            except OSError as error:
                if error.errno not in OUT_OF_DESCRIPTORS or not self._idle:
                    raise
                self._close_oldest()

    def _shrink(self, limit: int) -> None:
        while self._count > limit and self._idle:
            self._close_oldest()

    def _close_oldest(self) -> None:
        oldest, _ = self._idle.popitem(last=False)
        if isinstance(oldest, SharedFile):
            self._close(oldest)
        else:
            self._count -= 1
            oldest.drop()

    def _close(self, file: SharedFile) -> None:
        fd, file.fd = file.fd, -1
        self._count -= 1
        os.close(fd)


class SharedFile:
    """A file for many threads: `with file as fd` has it open. Opening raises OSError.

    Its state belongs to its `OpenFiles`, which gives it a descriptor and takes it away.
    """

    __slots__ = ("__weakref__", "_files", "_readers", "closed", "fd", "flags", "path", "users")

    def __init__(self, files: OpenFiles, path: Path, flags: int) -> None:
        self._files = files
        self._readers: weakref.WeakSet[object] = weakref.WeakSet()
        self.path = path
        self.flags = flags | os.O_CLOEXEC
        self.fd = -1
        self.users = 0
        self.closed = False

    def __enter__(self) -> int:
        return self._files.open_and_enter(self)

    def __exit__(self, *exc: object) -> None:
        self._files.leave(self)

    def close(self) -> None:
        """Keep it open no longer than it is in use. Idempotent."""
        self._files.close(self)

    def rename(self, path: Path) -> None:
        """Give the file another name, over another one if need be. Raises OSError."""
        self._files.rename(self, path)

    def add_reader(self, reader: object) -> None:
        """Remember that `reader`, for as long as it exists, will read from the file."""
        self._readers.add(reader)

    def outlive_removal(self, *, in_use: bool = False) -> None:
        """The file is about to be removed: if it has readers, or is `in_use`, it stays open from now on.

        Raises OSError.
        """
        if in_use or len(self._readers):
            self.__enter__()

    def __del__(self) -> None:
        if self.fd >= 0:
            self._files.end(self)
