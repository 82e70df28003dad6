"""DirectoryLock: one broker at a time for each log directory, or several that only read."""

from __future__ import annotations

import fcntl
import os
import struct
import sys
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path

from kclient.errors import IllegalStateError

_LOCK_FILE = ".lock"
_FLOCK = struct.Struct("hhqqi4x")
"""Linux's struct flock: type, whence, start, length, process."""

# A record lock, as Java's FileLock is, so that a Java broker is kept out as well, and so that a forked child that
# outlives this process does not go on holding it. It does not keep out this process itself, and would be lost if the
# file were opened and closed once more here: hence what this process has is looked at first.
_writers: set[Path] = set()
_readers: Counter[Path] = Counter()
# The one descriptor of all readers of a directory, None where there is no file: to close a second one would give up the
# lock of the first.
_shared: dict[Path, int | None] = {}
_process_lock = threading.Lock()


class DirectoryLock:
    """The lock by which a broker has a log directory for itself. Thread-safe."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._fd: int | None = None
        self._made = False

    def acquire(self) -> None:
        """Lock the directory for this process. Idempotent.

        Raises `IllegalStateError` if a broker, of this or of another process, uses it; OSError if it cannot be used.
        """
        if self._fd is not None:
            return
        real = self._directory.resolve()
        with _process_lock:
            if real in _writers or _readers[real]:
                raise _in_use(self._directory, os.getpid())
            fd, made = _open_or_make(self._directory / _LOCK_FILE)
            try:
                fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                holder = _holder(fd)
                os.close(fd)
                raise _in_use(self._directory, holder) from error
            if os.fstat(fd).st_nlink == 0:
                # Its owner removed it between our two calls: whoever comes next makes and locks another one.
                os.close(fd)
                raise _in_use(self._directory)
            _writers.add(real)
            self._fd, self._made = fd, made

    def release(self) -> None:
        """Give the lock back, and remove its file if it was not there before. Idempotent."""
        with _process_lock:
            fd, self._fd = self._fd, None
            if fd is not None:
                if self._made:
                    with suppress(OSError):
                        (self._directory / _LOCK_FILE).unlink()
                _writers.discard(self._directory.resolve())
                os.close(fd)


class SharedDirectoryLock(DirectoryLock):
    """The lock of those who only read. It is taken where a broker has left the file of its lock; none is made.

    So a broker that runs is noticed, and one that starts is kept out if it finds that file.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._held = False

    def acquire(self) -> None:
        if self._held:
            return
        real = self._directory.resolve()
        with _process_lock:
            if real in _writers:
                raise _in_use(self._directory, os.getpid())
            if not _readers[real]:
                _shared[real] = self._open()
            _readers[real] += 1
            self._held = True

    def release(self) -> None:
        with _process_lock:
            if self._held:
                self._held = False
                real = self._directory.resolve()
                _readers[real] -= 1
                if not _readers[real]:
                    del _readers[real]
                    fd = _shared.pop(real)
                    if fd is not None:
                        os.close(fd)

    def _open(self) -> int | None:
        try:
            fd = os.open(self._directory / _LOCK_FILE, os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            holder = _holder(fd)
            os.close(fd)
            raise _in_use(self._directory, holder) from error
        return fd


def _open_or_make(path: Path) -> tuple[int, bool]:
    """Return a descriptor of the file, and True if it was made. Raises OSError."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644), True
    except FileExistsError:
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o644), False


def _holder(fd: int) -> int | None:
    """Return the id of the process that has the file locked, None if the system does not say."""
    if sys.platform != "linux":
        return None  # other systems have another struct flock
    asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    try:
        kind, *_, pid = _FLOCK.unpack(fcntl.fcntl(fd, fcntl.F_GETLK, asked))
    except OSError:
        return None
    # It may have gone meanwhile; and one of another container has no id here.
    return pid if kind != fcntl.F_UNLCK and pid > 0 else None


def _in_use(path: Path, holder: int | None = None) -> IllegalStateError:
    who = "another broker" if holder is None else f"another broker, process {holder}"
    if holder == os.getpid():
        who = f"another broker of this process, {holder}"
    return IllegalStateError(
        f"Log directory {path} is in use by {who} (its {_LOCK_FILE} file is locked): stop that broker, or give this "
        "one a directory of its own"
    )
