"""Locks of log directories: one broker that writes, or any number that read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness.programs import run_script
from kclient.broker.log.directory_lock import DirectoryLock, SharedDirectoryLock
from kclient.errors import IllegalStateError

Make = Callable[[type[DirectoryLock]], DirectoryLock]

ELSEWHERE = """
    import sys
    from pathlib import Path
    from kclient.broker.log import directory_lock
    from kclient.errors import IllegalStateError
    lock = getattr(directory_lock, sys.argv[1])(Path(sys.argv[2]))
    try:
        lock.acquire()
        print("got it")
    except IllegalStateError as error:
        print(error)
"""


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    with ExitStack() as stack:

        def made(kind: type[DirectoryLock]) -> DirectoryLock:
            lock = kind(tmp_path)
            stack.callback(lock.release)
            return lock

        yield made


def elsewhere(kind: type[DirectoryLock], directory: Path) -> str:
    """The outcome of taking the lock in another process."""
    return run_script(ELSEWHERE, kind.__name__, str(directory))[0]


@pytest.mark.parametrize("second", [DirectoryLock, SharedDirectoryLock])
def test_who_writes_is_alone(make: Make, tmp_path: Path, second: type[DirectoryLock]) -> None:
    first = make(DirectoryLock)
    first.acquire()
    with pytest.raises(IllegalStateError, match=f"in use by another broker of this process, {os.getpid()}"):
        make(second).acquire()
    assert f"in use by another broker, process {os.getpid()} " in elsewhere(second, tmp_path)
    first.release()
    make(second).acquire()


def test_several_may_read_and_keep_out_who_writes_until_the_last_is_gone(make: Make, tmp_path: Path) -> None:
    (tmp_path / ".lock").touch()
    readers = [make(SharedDirectoryLock) for _ in range(2)]
    for reader in readers:
        reader.acquire()
        reader.acquire()
    for reader in readers:
        assert "got it" in elsewhere(SharedDirectoryLock, tmp_path)
        assert "in use by another broker" in elsewhere(DirectoryLock, tmp_path)
        with pytest.raises(IllegalStateError, match="in use by another broker"):
            make(DirectoryLock).acquire()
        reader.release()
        reader.release()
    assert (tmp_path / ".lock").exists()
    make(DirectoryLock).acquire()


def test_the_file_of_another_broker_is_not_removed(make: Make, tmp_path: Path) -> None:
    (tmp_path / ".lock").touch()
    lock = make(DirectoryLock)
    lock.acquire()
    lock.release()
    assert (tmp_path / ".lock").exists(), "Kafka leaves it"


def test_who_reads_makes_no_file(make: Make, tmp_path: Path) -> None:
    reader = make(SharedDirectoryLock)
    reader.acquire()
    assert list(tmp_path.iterdir()) == []
