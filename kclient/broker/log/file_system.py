"""FileSystem: the files of log directories, as the broker may change them or not.

Whoever opens, recovers or closes a log changes files through it. On a directory that is to stay as it is, a
`ReadOnlyFileSystem` keeps the changes in memory: the same steps find the same log there, and nothing is written.
"""

from __future__ import annotations

import mmap
import os
import shutil
import threading
from pathlib import Path

from kclient.broker.log.directory_lock import DirectoryLock, SharedDirectoryLock
from kclient.broker.log.files import (
    atomic_write,
    fsync_dir,
    fsync_if_present,
    make_dirs,
    opened,
    remove_if_present,
    write_all,
)
from kclient.errors import PolicyViolationError
from kclient.record.file_records import FileRecords, FileRecordsView
from kclient.record.open_files import OpenFiles, SharedFile


class FileSystem:
    """Files as they are, and as they are changed. Thread-safe. Methods raise OSError as the system does."""

    writable = True
    """True if what is changed is changed on disk."""

    def check_writable(self, path: Path) -> None:
        """Raise `PolicyViolationError` if what is in directory `path` has to stay as it is."""

    def directory_lock(self, directory: Path) -> DirectoryLock:
        """The lock of a log directory, not taken yet."""
        return DirectoryLock(directory)

    def make_directory(self, path: Path, *, durable: bool = False) -> None:
        """Make a directory and its parents, where they are missing; if asked to, force their names to disk."""
        if durable:
            make_dirs(path)
        else:
            path.mkdir(parents=True, exist_ok=True)

    def list(self, directory: Path) -> list[Path]:
        """The files and directories in `directory`, in no order."""
        return list(directory.iterdir())

    def exists(self, path: Path) -> bool:
        """True if there is such a file."""
        return path.exists()

    def size(self, path: Path) -> int:
        """Bytes in the file."""
        return path.stat().st_size

    def read(self, path: Path) -> bytes:
        """All that is in the file."""
        return path.read_bytes()

    def map(self, path: Path, size: int) -> bytes | mmap.mmap:
        """The first `size` bytes of the file, which does not change any more, mapped where that can be."""
        with opened(path, os.O_RDONLY) as fd:
            return mmap.mmap(fd, size, access=mmap.ACCESS_READ)

    def open_records(self, path: Path, files: OpenFiles) -> FileRecords:
        """The batches in the file, which is made if it is missing, as one of `files`."""
        return FileRecords.open(path, files=files)

    def write(
        self, path: Path, data: bytes | bytearray | memoryview, position: int = 0, size: int | None = None
    ) -> None:
        """Write `data` at `position` of the file, which is made if it is missing, and cut it to `size` bytes."""
        with opened(path, os.O_RDWR | os.O_CREAT) as fd:
            write_all(fd, data, position)
            if size is not None:
                os.ftruncate(fd, size)

    def truncate(self, path: Path, size: int) -> None:
        """Cut the file to `size` bytes."""
        os.truncate(path, size)

    def atomic_write(self, path: Path, data: bytes, *, durable: bool = True) -> None:
        """Do as `files.atomic_write` does."""
        atomic_write(path, data, durable=durable)

    def replace(self, path: Path, new: Path) -> None:
        """Give a file or directory the name `new`, over another file if need be."""
        path.replace(new)

    def remove(self, path: Path) -> None:
        """Remove a file, which may be missing."""
        remove_if_present(path)

    def remove_tree(self, directory: Path) -> None:
        """Remove a directory with all that is in it."""
        shutil.rmtree(directory)

    def sync(self, path: Path) -> None:
        """Force a file, which may be missing, to disk."""
        fsync_if_present(path)

    def sync_directory(self, directory: Path) -> None:
        """Make new names, changed names and removals in `directory` durable."""
        fsync_dir(directory)


DISK = FileSystem()
"""The files as they are, to be changed."""


class ReadOnlyFileSystem(FileSystem):
    """Files that stay as they are, under changes that are kept in memory.

    Small files may be written anew; of a file of batches the view is cut, and nothing is appended.
    """

    writable = False

    def __init__(self) -> None:
        self._lock = threading.RLock()
        # By directory and name: what a file has now, the other file that it is, or None for one that is gone.
        self._changes: dict[Path, dict[str, bytearray | Path | None]] = {}

    def check_writable(self, path: Path) -> None:
        raise PolicyViolationError(f"{path} was opened read-only (kclient.read.only): nothing can be written")

    def directory_lock(self, directory: Path) -> DirectoryLock:
        return SharedDirectoryLock(directory)

    def make_directory(self, path: Path, *, durable: bool = False) -> None:
        del durable  # none is made
        if not path.is_dir():
            raise FileNotFoundError(f"{path} is no directory, and a broker that only reads makes none")

    def list(self, directory: Path) -> list[Path]:
        found = list(directory.iterdir())
        with self._lock:
            changes = self._changes.get(directory)
            if changes is None:
                return found
            kept = [path for path in found if path.name not in changes]
            return kept + [directory / name for name, content in changes.items() if content is not None]

    def exists(self, path: Path) -> bool:
        content = self._content(path)
        return content is not None and (isinstance(content, bytearray) or content.exists())

    def size(self, path: Path) -> int:
        content = self._found(path)
        return len(content) if isinstance(content, bytearray) else content.stat().st_size

    def read(self, path: Path) -> bytes:
        content = self._found(path)
        return bytes(content) if isinstance(content, bytearray) else content.read_bytes()

    def map(self, path: Path, size: int) -> bytes | mmap.mmap:
        content = self._found(path)
        return bytes(content[:size]) if isinstance(content, bytearray) else super().map(content, size)

    def open_records(self, path: Path, files: OpenFiles) -> FileRecords:
        content = self._content(path)
        place = content if isinstance(content, Path) else path
        try:
            size = place.stat().st_size if isinstance(content, Path) else 0
        except FileNotFoundError:
            size = 0
        return FileRecordsView(SharedFile(files, place, os.O_RDONLY), size)

    def write(
        self, path: Path, data: bytes | bytearray | memoryview, position: int = 0, size: int | None = None
    ) -> None:
        with self._lock:
            content = self._memory(path)
            content.extend(bytes(max(position - len(content), 0)))
            content[position : position + len(data)] = data
            if size is not None:
                del content[size:]

    def truncate(self, path: Path, size: int) -> None:
        with self._lock:
            del self._memory(path)[size:]

    def atomic_write(self, path: Path, data: bytes, *, durable: bool = True) -> None:
        del durable  # it lasts as long as this object
        self._change(path, bytearray(data))

    def replace(self, path: Path, new: Path) -> None:
        with self._lock:
            self._change(new, self._found(path))
            self._change(path, None)

    def remove(self, path: Path) -> None:
        self._change(path, None)

    def remove_tree(self, directory: Path) -> None:
        self._change(directory, None)

    def sync(self, path: Path) -> None:
        pass

    def sync_directory(self, directory: Path) -> None:
        pass

    def _content(self, path: Path) -> bytearray | Path | None:
        with self._lock:
            return self._changes.get(path.parent, {}).get(path.name, path)

    def _found(self, path: Path) -> bytearray | Path:
        content = self._content(path)
        if content is None or (isinstance(content, Path) and not content.exists()):
            raise FileNotFoundError(f"There is no {path}")
        return content

    def _memory(self, path: Path) -> bytearray:
        """Return what is in the file, to be changed. Called with the lock held."""
        content = self._content(path)
        if not isinstance(content, bytearray):
            there = content is not None and content.exists()
            content = bytearray(content.read_bytes() if content is not None and there else b"")
            self._change(path, content)
        return content

    def _change(self, path: Path, content: bytearray | Path | None) -> None:
        with self._lock:
            self._changes.setdefault(path.parent, {})[path.name] = content
