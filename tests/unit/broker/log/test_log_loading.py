from __future__ import annotations

import errno
import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import attrs
import pytest

from harness.broker.logs import LogHarness, append_alone
from harness.mock_time import MockTime
from harness.waiting import wait_until
from kclient.broker.log import log_loading
from kclient.broker.log.config import LogConfig
from kclient.broker.log.loader import LoadOptions
from kclient.broker.log.log_directory import FoundPartition, LogDirectory
from kclient.broker.log.log_loading import LogLoading
from kclient.broker.log.log_manager import LogManager
from kclient.broker.log.unified_log import UnifiedLog
from kclient.broker.timer import Scheduler
from kclient.common.topic_partition import TopicPartition
from kclient.errors import KafkaStorageError

OPTIONS = {"t": LoadOptions(LogConfig())}


@attrs.frozen
class Opened:
    """All that is looked at of a log."""

    log_dir: LogDirectory


def opened(found: FoundPartition) -> UnifiedLog:
    return cast("UnifiedLog", Opened(found.log_dir))


class Found:
    """Directories with partitions in them, of which nothing is opened."""

    def __init__(self, root: Path, counts: list[int], *, clean: bool) -> None:
        self.dirs = [LogDirectory(root / f"d{number}") for number in range(len(counts))]
        numbers = iter(range(sum(counts)))
        self.partitions = {}
        for log_dir, count in zip(self.dirs, counts, strict=True):
            log_dir.acquire()
            if clean:
                log_dir.clean_shutdown.write()
            self.partitions[log_dir] = [
                FoundPartition(TopicPartition("t", next(numbers)), log_dir, log_dir.path, None)
                for _ in range(count)
            ]

    def release(self) -> None:
        for log_dir in self.dirs:
            log_dir.release()


@pytest.fixture
def unclean(tmp_path: Path) -> Iterator[Found]:
    found = Found(tmp_path, [4, 4], clean=False)
    yield found
    found.release()


def test_directories_and_the_logs_of_each_are_opened_at_the_same_time(unclean: Found) -> None:
    all_at_once = threading.Barrier(6)

    def load(found: FoundPartition, options: LoadOptions) -> UnifiedLog:
        if found.topic_partition.partition % 4 < 3:
            all_at_once.wait(10)
        return opened(found)

    loading = LogLoading(load, 3)
    loading.run(unclean.partitions, OPTIONS)
    assert len(loading.logs) == 8


def test_after_a_clean_shutdown_the_logs_of_a_directory_are_opened_by_one_thread(tmp_path: Path) -> None:
    threads = set()
    found = Found(tmp_path, [5], clean=True)

    def load(one: FoundPartition, options: LoadOptions) -> UnifiedLog:
        threads.add(threading.current_thread())
        assert options.clean
        return opened(one)

    LogLoading(load, 3).run(found.partitions, OPTIONS)
    assert len(threads) == 1
    found.release()


def test_a_long_opening_says_how_many_logs_are_left(
    unclean: Found, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(log_loading, "PROGRESS_S", 0.01)
    caplog.set_level(logging.INFO)

    def load(found: FoundPartition, options: LoadOptions) -> UnifiedLog:
        if found.topic_partition.partition == 3:
            wait_until(lambda: "d0: 1 logs are left to be opened" in caplog.text, what="a line about it")
        return opened(found)

    LogLoading(load, 1).run(unclean.partitions, OPTIONS)
    assert "Opened 4 logs in" in caplog.text


def test_a_directory_that_fails_is_given_up_and_the_others_are_opened(unclean: Found) -> None:
    tried = []

    def load(found: FoundPartition, options: LoadOptions) -> UnifiedLog:
        tried.append(found.topic_partition.partition)
        if found.topic_partition.partition == 1:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return opened(found)

    loading = LogLoading(load, 1)
    loading.run(unclean.partitions, OPTIONS)
    assert [log_dir.offline_error is None for log_dir in unclean.dirs] == [False, True]
    assert sorted(tried) == [0, 1, 4, 5, 6, 7]
    assert sorted(tp.partition for tp in loading.logs) == [0, 4, 5, 6, 7]


def test_an_error_that_is_not_the_disks_ends_it_all(unclean: Found) -> None:
    tried = []

    def load(found: FoundPartition, options: LoadOptions) -> UnifiedLog:
        tried.append(found)
        if found.log_dir is unclean.dirs[0]:
            raise KafkaStorageError("what is in it cannot be")
        wait_until(loading._given_up.is_set, what="the end")
        return opened(found)

    loading = LogLoading(load, 1)
    with pytest.raises(KafkaStorageError, match="cannot be"):
        loading.run(unclean.partitions, OPTIONS)
    assert len(tried) < 8
    assert all(thread.name.split("_")[0] != "log-opener-d0" for thread in threading.enumerate())


@pytest.mark.parametrize("clean", [True, False])
def test_what_was_flushed_is_not_read_at_a_start(
    tmp_path: Path, harness: LogHarness, monkeypatch: pytest.MonkeyPatch, clean: bool
) -> None:
    config = LogConfig(segment_bytes=1 << 20)
    time = MockTime()

    def start() -> LogManager:
        manager = LogManager([tmp_path / "d"], config, time, Scheduler("loading", time))
        manager.startup()
        return manager

    manager = start()
    log = manager.get_or_create_log(TopicPartition("t", 0), config=config)
    batch = harness.batch([bytes(100_000)])
    for _ in range(50):
        append_alone(log, batch)
    size = log.size
    log.flusher.flush()
    manager.checkpoint_recovery_points()
    if clean:
        manager.shutdown()
    else:
        manager._abandon()
    read = 0
    real = os.pread

    def count(fd: int, length: int, position: int) -> bytes:
        nonlocal read
        data = real(fd, length, position)
        read += len(data)
        return data

    monkeypatch.setattr(os, "pread", count)
    manager = start()
    reopened = manager.get_log(TopicPartition("t", 0))
    assert reopened is not None
    assert reopened.log_end_offset == 50
    # A segment that is not flushed is read from its begin, as Kafka does.
    assert read < (10_000 if clean else 2 << 20)
    assert size > 5_000_000
    manager.shutdown()
