"""A disk that fails in any operation on files: nothing promised is lost, and nothing but a storage error is raised."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.broker.power import not_forced
from harness.broker.promises import LogWriter, Promise, check
from kclient.broker.log.durability import AckPolicy
from kclient.errors import KafkaStorageError

OPERATIONS = (
    "open",
    "mkdir",
    "unlink",
    "rename",
    "replace",
    "pwrite",
    "pwritev",
    "ftruncate",
    "fsync",
    "fdatasync",
)
STEPS = [
    *["append a", "append b"] * 2, "roll a", *["append a"] * 6, "checkpoint", "retention", "append a", "flush a",
    "roll a", "delete b", "append b", "append a", "checkpoint", "retention", "append a",
]  # fmt: skip


class FailingDisk:
    """Fails in its operation number `at`, and if it `stays` broken in all that follow that change anything."""

    def __init__(self, at: int, code: int, *, stays: bool) -> None:
        self.operations = 0
        self._at = at
        self._code = code
        self._stays = stays
        self._lock = threading.Lock()

    @contextmanager
    def failing(self) -> Iterator[None]:
        """Return a context in which it is the disk."""
        with pytest.MonkeyPatch.context() as patch:
            for name in OPERATIONS:
                patch.setattr(os, name, self._watched(name, getattr(os, name)))
            yield

    def _watched(self, name: str, real: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            if name == "open" and not args[1] & (os.O_CREAT | os.O_WRONLY | os.O_RDWR):
                return real(*args, **kwargs)
            with self._lock:
                number, self.operations = self.operations, self.operations + 1
            if number == self._at or (self._stays and number > self._at and name != "ftruncate"):
                if name == "pwritev" and number == self._at:
                    data = b"".join(map(bytes, args[1]))
                    return os.pwrite(
                        args[0], data[: len(data) // 2], args[2]
                    )  # the rest comes, and fails if it stays
                raise OSError(self._code, os.strerror(self._code))
            return real(*args, **kwargs)

        return call


def run(root: Path, at: int, code: int, *, stays: bool) -> tuple[list[Promise], int, bool]:
    """Take the steps, going on after storage errors; what was promised, the number of operations, if any failed."""
    promised: list[Promise] = []
    disk = FailingDisk(at, code, stays=stays)
    failed = False
    with not_forced():
        writer = LogWriter(root, promised.append, AckPolicy.BATCH)
        with disk.failing():
            for step in STEPS:
                try:
                    writer.do(step)
                except KafkaStorageError:
                    failed = True
        writer.close()
    return promised, disk.operations, failed


@pytest.mark.parametrize(
    ("code", "stays"), [(errno.ENOSPC, True), (errno.EIO, False)], ids=["full", "broken"]
)
def test_whatever_fails_nothing_promised_is_lost(tmp_path: Path, code: int, stays: bool) -> None:
    _, operations, failed = run(tmp_path / "whole", -1, code, stays=False)
    assert operations > 100
    assert not failed
    refused = 0
    for at in range(operations):
        root = tmp_path / f"d{at}"
        promised, _, failed = run(root, at, code, stays=stays)
        refused += failed
        with not_forced():
            check(root, promised, gaps=False)
    assert refused > operations // 2
