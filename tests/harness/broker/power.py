"""A disk that remembers what was forced to it, and what may be left of the rest when the power fails."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import attrs
import pytest

_PAGE = 512


@attrs.define
class _File:
    durable: bytes = b""
    pending: list[tuple[int, bytes | None]] = attrs.Factory(list)
    """Writes, as a position and bytes, and truncations, as a size and None."""

    def forced(self) -> None:
        self.durable, self.pending = _applied(self.durable, self.pending), []

    def after_crash(self, chance: random.Random) -> bytes:
        """Old, new or some of both: pages reach the disk in any order, and a size without what it counts."""
        fate = chance.randrange(4)
        if fate == 0:
            return self.durable
        if fate == 1:
            return _applied(self.durable, self.pending)
        if fate == 2:
            return _applied(self.durable, self.pending[: chance.randrange(len(self.pending) + 1)])
        new = _applied(self.durable, self.pending)
        old = self.durable[: len(new)].ljust(len(new), b"\0")
        return b"".join(
            (new if chance.random() < 0.5 else old)[at : at + _PAGE] for at in range(0, len(new), _PAGE)
        )


@attrs.define
class _Directory:
    durable: dict[str, int] = attrs.Factory(dict)
    pending: list[tuple[str, str, int]] = attrs.Factory(list)
    """Changes, as the name that goes (or ""), the name that comes (or ""), and what it names."""

    def forced(self) -> None:
        self.durable, self.pending = _changed(self.durable, self.pending), []

    def after_crash(self, chance: random.Random) -> dict[str, int]:
        """Some of the changes, in whatever order the disk liked."""
        likely = chance.choice((0.0, 0.5, 1.0))
        return _changed(self.durable, [one for one in self.pending if chance.random() < likely])


class RecordingDisk:
    """Records what is done to the files below `root` while `recording`, and makes what a power failure may leave.

    The model is what POSIX promises and no more: a file's bytes are safe after fsync or fdatasync of it, its name
    after fsync of its directory, and a rename is done or not. Forcing to disk is recorded and not done.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = threading.RLock()
        self._ids = count()
        self._top = next(self._ids)
        self._by_path: dict[str, int] = {str(root): self._top}
        self._is_file: dict[int, bool] = {self._top: False}
        self._fds: dict[int, tuple[str, int]] = {}
        self._events: list[tuple[Any, ...]] = []

    def __len__(self) -> int:
        """The number of things that were done, and noted."""
        return len(self._events)

    def note(self, what: object) -> None:
        """Remember when something was promised."""
        with self._lock:
            self._events.append(("note", what))

    def noted(self, before: int) -> list[Any]:
        """Return what was noted by then."""
        return [event[1] for event in self._events[:before] if event[0] == "note"]

    def moments(self) -> list[int]:
        """The numbers of things done after which files are not as before, and of all."""
        changes = [at for at, event in enumerate(self._events) if event[0] not in {"force", "note"}]
        return [*changes, len(self._events)]

    def after_kill(self, at: int, target: Path) -> None:
        """Write into `target` what is there if the process is killed after the first `at` things: all of it."""
        self._write(at, target, lambda thing: thing.forced() or thing.durable)

    def after_crash(self, at: int, target: Path, chance: random.Random) -> None:
        """Write into `target` what may be on the disk if the power fails after the first `at` things."""
        self._write(at, target, lambda thing: thing.after_crash(chance))

    def _write(self, at: int, target: Path, left_of: Callable[[Any], Any]) -> None:
        files: dict[int, _File] = {}
        directories = {self._top: _Directory()}
        for kind, *rest in self._events[:at]:
            match kind, rest:
                case "file", (node,):
                    files[node] = _File()
                case "directory", (node,):
                    directories[node] = _Directory()
                case "change", (parent, *change):
                    directories[parent].pending.append(tuple(change))  # type: ignore[arg-type]
                case "write", (node, *change):
                    files[node].pending.append(tuple(change))  # type: ignore[arg-type]
                case "force", (node,):
                    (files if node in files else directories)[node].forced()

        def put(node: int, path: Path) -> None:
            if node in files:
                path.write_bytes(left_of(files[node]))
                return
            path.mkdir(exist_ok=True)
            for name, child in left_of(directories[node]).items():
                put(child, path / name)

        put(self._top, target)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Return a context in which all that changes files is recorded."""
        with pytest.MonkeyPatch.context() as patch:
            for name, watch in (
                ("open", self._open), ("mkdir", self._mkdir), ("rmdir", self._remove), ("unlink", self._remove),
                ("rename", self._rename), ("replace", self._rename), ("pwrite", self._pwrite),
                ("pwritev", self._pwrite), ("ftruncate", self._ftruncate),
            ):  # fmt: skip
                patch.setattr(os, name, self._locked(watch, getattr(os, name)))
            for name in ("fsync", "fdatasync"):
                patch.setattr(os, name, self._locked(self._force, getattr(os, name)))
            yield

    def _locked(self, watch: Callable[..., Any], real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            with self._lock:
                return watch(real, *args, **kwargs)

        return call

    def _open(self, real: Any, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        key = self._key(path, dir_fd)
        fd: int = real(path, flags, mode, dir_fd=dir_fd)
        self._fds.pop(fd, None)
        if key is None:
            return fd
        if key not in self._by_path and flags & os.O_CREAT:
            self._make(key, "file")
        if key in self._by_path:
            node = self._by_path[key]
            self._fds[fd] = key, node
            if flags & os.O_TRUNC:
                self._events.append(("write", node, 0, None))
        return fd

    def _mkdir(self, real: Any, path: Any, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        real(path, mode, dir_fd=dir_fd)
        key = self._key(path, dir_fd)
        if key is not None:
            self._make(key, "directory")

    def _remove(self, real: Any, path: Any, *, dir_fd: int | None = None) -> None:
        real(path, dir_fd=dir_fd)
        key = self._key(path, dir_fd)
        if key is not None:
            self._by_path.pop(key, None)
            self._change(key, os.path.basename(key), "", -1)

    def _rename(self, real: Any, source: Any, target: Any) -> None:
        real(source, target)
        old, new = self._key(source), self._key(target)
        if old is None or new is None:
            return
        assert os.path.dirname(old) == os.path.dirname(new), "moved to another directory"
        node = self._by_path.pop(old)
        self._by_path[new] = node
        for path in [path for path in self._by_path if path.startswith(old + os.sep)]:
            self._by_path[new + path[len(old) :]] = self._by_path.pop(path)
        self._change(new, os.path.basename(old), os.path.basename(new), node)

    def _pwrite(self, real: Any, fd: int, data: Any, position: int) -> int:
        written: int = real(fd, data, position)
        if fd in self._fds:
            whole = b"".join(map(bytes, data)) if isinstance(data, list) else bytes(data)
            self._events.append(("write", self._fds[fd][1], position, whole[:written]))
        return written

    def _ftruncate(self, real: Any, fd: int, size: int) -> None:
        real(fd, size)
        if fd in self._fds:
            self._events.append(("write", self._fds[fd][1], size, None))

    def _force(self, real: Any, fd: int) -> None:
        if fd in self._fds:
            self._events.append(("force", self._fds[fd][1]))
        else:
            real(fd)

    def _make(self, key: str, kind: str) -> None:
        node = next(self._ids)
        self._by_path[key] = node
        self._is_file[node] = kind == "file"
        self._events.append((kind, node))
        self._change(key, "", os.path.basename(key), node)

    def _change(self, key: str, gone: str, there: str, node: int) -> None:
        self._events.append(("change", self._by_path[os.path.dirname(key)], gone, there, node))

    def _key(self, path: Any, dir_fd: int | None = None) -> str | None:
        name = os.fspath(path)
        if dir_fd is not None:
            if dir_fd not in self._fds:
                return None
            name = os.path.join(self._fds[dir_fd][0], name)
        name = os.path.abspath(name)
        return name if name == str(self._root) or name.startswith(str(self._root) + os.sep) else None


@contextmanager
def not_forced() -> Iterator[None]:
    """Return a context in which nothing waits for the disk."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("fsync", "fdatasync"):
            patch.setattr(os, name, lambda _fd: None)
        yield


def _applied(data: bytes, changes: list[tuple[int, bytes | None]]) -> bytes:
    made = bytearray(data)
    for position, part in changes:
        end = position + (0 if part is None else len(part))
        if part is None:
            del made[position:]
        if len(made) < end:
            made.extend(bytes(end - len(made)))
        if part is not None:
            made[position:end] = part
    return bytes(made)


def _changed(names: dict[str, int], changes: list[tuple[str, str, int]]) -> dict[str, int]:
    made = dict(names)
    for gone, there, node in changes:
        made.pop(gone, None)
        if there:
            made[there] = node
    return made
