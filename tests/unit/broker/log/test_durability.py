from __future__ import annotations

import threading
from queue import SimpleQueue

import pytest

from kclient.broker.log.durability import DirectoryCommit, GroupCommit
from kclient.errors import KafkaStorageError


def test_appends_that_come_together_share_an_fdatasync() -> None:
    first_began, go = threading.Event(), threading.Event()
    written = [1]
    calls: list[int] = []

    running = threading.Lock()
    overlaps: list[int] = []

    def sync() -> int:
        end = written[0]
        calls.append(end)
        if not running.acquire(blocking=False):
            overlaps.append(end)
            return end
        try:
            if len(calls) == 1:
                first_began.set()
                assert go.wait(10)
            return end
        finally:
            running.release()

    directory = DirectoryCommit("test")
    commit = GroupCommit(directory, sync)
    done: SimpleQueue[BaseException | None] = SimpleQueue()
    commit.when_durable(1, done.put)
    assert first_began.wait(10)
    written[0] = 6
    for end in range(2, 7):
        commit.when_durable(end, done.put)
    go.set()
    assert [done.get(timeout=10) for _ in range(6)] == [None] * 6
    directory.stop()
    assert calls == [1, 6]
    assert not overlaps


def test_everyone_who_waits_for_a_failed_fdatasync_is_told() -> None:
    began, go = threading.Event(), threading.Event()
    error = KafkaStorageError("gone")

    def sync() -> int:
        began.set()
        assert go.wait(10)
        raise error

    directory = DirectoryCommit("test")
    commit = GroupCommit(directory, sync)
    done: SimpleQueue[BaseException | None] = SimpleQueue()
    commit.when_durable(1, done.put)
    assert began.wait(10)
    commit.when_durable(2, done.put)
    go.set()
    assert [done.get(timeout=10) for _ in range(2)] == [error, error]
    with pytest.raises(KafkaStorageError, match="gone"):
        commit.await_durable(3)
    directory.stop()
