"""The cleaner threads clean what is dirty, and keep out of the way of retention, truncation and deletion."""

from __future__ import annotations

import errno
import logging
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.broker.cleaning import pairs_of, put
from harness.broker.logs import LogHarness
from harness.mock_time import MockTime
from harness.waiting import wait_until
from kclient.broker.log.cleaner.cleaner import Cleaner
from kclient.broker.log.cleaner.log_cleaner import CleanerConfig
from kclient.broker.log.config import LogConfig
from kclient.broker.log.log_manager import LogManager
from kclient.broker.log.unified_log import UnifiedLog
from kclient.broker.timer import Scheduler
from kclient.common.topic_partition import TopicPartition

A, B = TopicPartition("a", 0), TopicPartition("b", 0)
COMPACT = LogConfig(cleanup_policy=("compact",))
BACKOFF_MS = 1000


class Managed:
    """A log manager with a cleaner, whose clock stands still until it is moved."""

    def __init__(self, harness: LogHarness, root: Path, threads: int = 1) -> None:
        self.harness = harness
        self.time: MockTime = harness.time
        self.root = root
        self.config = CleanerConfig(threads=threads, backoff_ms=BACKOFF_MS)
        self.scheduler = Scheduler("test", self.time)
        self.start()

    def start(self, config: LogConfig = COMPACT) -> None:
        self.manager = LogManager([self.root], COMPACT, self.time, self.scheduler, cleaner=self.config)
        self.manager.startup(lambda _topic: config)
        assert self.manager.cleaner is not None
        self.cleaner = self.manager.cleaner

    def dirty(self, tp: TopicPartition = A, count: int = 3) -> UnifiedLog:
        """Make a log with records of one key, of which the last will stay, and an active segment."""
        log = self.manager.get_or_create_log(tp)
        for i in range(count):
            put(self.harness, log, (b"k", b"%d" % i))
        log.roll()
        return log

    def cleaned_to(self, log: UnifiedLog, offset: int) -> None:
        """Let the threads look again until the log is clean up to there."""

        def reached() -> bool:
            self.time.advance(BACKOFF_MS)
            return self.cleaner.manager.cleaned_to(log) == offset

        wait_until(reached, what="cleaning")

    def await_round(self, slow: Slow) -> None:
        """Let the threads look again until one is in the middle of a round."""

        def begun() -> bool:
            self.time.advance(BACKOFF_MS)
            return slow.begun.is_set()

        wait_until(begun, what="a round")

    def checkpoint(self) -> list[str]:
        return (self.root / "cleaner-offset-checkpoint").read_text().splitlines()


@pytest.fixture
def managed(harness: LogHarness, tmp_path: Path) -> Iterator[Managed]:
    made = Managed(harness, tmp_path / "logs")
    yield made
    made.manager.shutdown()


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    made = Slow()
    real = Cleaner._copy_segment

    def copy(self: Cleaner, *args: object) -> None:
        made.wait(lambda: self._check(A))
        real(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Cleaner, "_copy_segment", copy)
    yield made
    made.go_on.set()


class Slow:
    """Holds rounds up in the middle, as a large log does."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.go_on = threading.Event()

    def wait(self, check: Callable[[], None]) -> None:
        self.begun.set()
        while not self.go_on.wait(0.001):
            check()


def test_a_dirty_log_is_cleaned_and_the_checkpoint_says_how_far(managed: Managed) -> None:
    log = managed.dirty()
    managed.cleaned_to(log, 3)
    assert [offset for offset, _, _ in pairs_of(log)] == [2]
    assert managed.checkpoint() == ["0", "1", "a 0 3"]


def test_after_a_restart_it_goes_on_where_it_was(managed: Managed) -> None:
    managed.cleaned_to(managed.dirty(), 3)
    managed.manager.shutdown()
    managed.start()
    log = managed.manager.get_log(A)
    assert log is not None
    assert managed.cleaner.manager.cleaned_to(log) == 3
    managed.cleaned_to(managed.dirty(count=2), 5)
    assert [offset for offset, _, _ in pairs_of(log)] == [4]


@pytest.mark.parametrize("damage", ["", "garbage", "0\n1\na 0 99\n"])
def test_a_checkpoint_that_cannot_be_right_means_that_all_is_dirty(managed: Managed, damage: str) -> None:
    managed.cleaned_to(managed.dirty(), 3)
    managed.manager.shutdown()
    (managed.root / "cleaner-offset-checkpoint").write_text(damage)
    managed.start()
    log = managed.manager.get_log(A)
    assert log is not None
    managed.cleaned_to(log, 3)


def test_logs_that_are_not_compacted_are_left_alone(managed: Managed) -> None:
    log = managed.manager.get_or_create_log(B, config=LogConfig())
    for _ in range(2):
        put(managed.harness, log, (b"k", b"v"))
    log.roll()
    managed.cleaned_to(managed.dirty(), 3)
    assert len(pairs_of(log)) == 2


def test_a_log_that_cannot_be_cleaned_is_left_alone_and_the_others_are_cleaned(
    managed: Managed, caplog: pytest.LogCaptureFixture
) -> None:
    managed.cleaner.shutdown()
    managed.dirty(A, 9)
    path = managed.root / "a-0" / f"{0:020d}.log"
    path.write_bytes(path.read_bytes()[:-2] + b"xx")
    managed.dirty(B)
    managed.manager.shutdown()
    managed.start()
    other = managed.manager.get_log(B)
    assert other is not None
    managed.cleaned_to(other, 3)
    wait_until(lambda: bool(managed.cleaner.manager.uncleanable), what="the log to be given up")
    assert [one.topic_partition for one in managed.cleaner.manager.uncleanable] == [A]
    assert managed.cleaner.metrics().uncleanable_partitions_counts == {managed.root: 1}
    assert "a-0 cannot be cleaned" in caplog.text
    assert managed.cleaner.metrics().dead_thread_count == 0


def test_a_disk_that_fails_takes_the_directory_offline(
    managed: Managed, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = managed.dirty()
    real = os.fdatasync

    def fail(fd: int) -> None:
        if threading.current_thread().name.startswith("log-cleaner"):
            raise OSError(errno.EIO, "broken")
        real(fd)

    monkeypatch.setattr(os, "fdatasync", fail)

    def offline() -> bool:
        managed.time.advance(BACKOFF_MS)
        return log.log_dir.offline_error is not None

    wait_until(offline, what="the directory to go offline")
    wait_until(lambda: not managed.cleaner.manager.uncleanable, what="the end of the round")
    assert managed.cleaner.metrics().dead_thread_count == 0


def test_deleting_a_log_ends_the_round_that_is_cleaning_it(managed: Managed, slow: Slow) -> None:
    managed.dirty()
    managed.await_round(slow)
    managed.manager.delete_log(A)
    assert managed.cleaner.manager.uncleanable == []
    slow.go_on.set()
    log = managed.dirty(A, 2)
    managed.cleaned_to(log, 2)
    assert managed.checkpoint() == ["0", "1", "a 0 2"]


def test_a_deleted_log_leaves_the_checkpoint(managed: Managed) -> None:
    managed.cleaned_to(managed.dirty(A), 3)
    managed.cleaned_to(managed.dirty(B), 3)
    managed.manager.delete_log(A)
    assert managed.checkpoint() == ["0", "1", "b 0 3"]


def test_a_partition_that_is_paused_is_not_cleaned_until_all_have_let_go(managed: Managed) -> None:
    manager = managed.cleaner.manager
    manager.abort_and_pause(A)
    with manager.paused(A):
        log = managed.dirty(A)
        managed.cleaned_to(managed.dirty(B), 3)
    managed.cleaned_to(managed.dirty(TopicPartition("c", 0)), 3)
    assert manager.cleaned_to(log) is None
    manager.resume([A])
    managed.cleaned_to(log, 3)


def test_truncation_ends_the_round_and_takes_the_checkpoint_back(managed: Managed, slow: Slow) -> None:
    log = managed.dirty()
    managed.await_round(slow)
    assert managed.manager.truncate_log(A, 2)
    assert len(pairs_of(log)) == 2
    slow.go_on.set()
    put(managed.harness, log, (b"k", b"new"))
    log.roll()
    managed.cleaned_to(log, 3)
    assert managed.manager.truncate_log(A, 2)
    assert (managed.cleaner.manager.cleaned_to(log) or 0) <= log.segment_base_offsets[-1]


def test_a_policy_without_compaction_ends_the_round(managed: Managed, slow: Slow) -> None:
    log = managed.dirty()
    managed.await_round(slow)
    managed.manager.update_config(A, LogConfig())
    slow.go_on.set()
    managed.cleaned_to(managed.dirty(B), 3)
    assert len(pairs_of(log)) == 3


def test_retention_of_the_manager_passes_compacted_logs_by(managed: Managed) -> None:
    both = LogConfig(cleanup_policy=("compact", "delete"), retention_ms=0, min_cleanable_dirty_ratio=1)
    log = managed.manager.get_or_create_log(A, config=both)
    put(managed.harness, log, (b"k", b"v"), timestamp_ms=1)
    log.roll()
    assert managed.manager.delete_old_segments() == 0

    def deleted() -> bool:
        managed.time.advance(BACKOFF_MS)
        return log.log_start_offset == 1

    wait_until(deleted, what="the cleaner's retention")


def test_without_a_cleaner_retention_passes_them_by_too(harness: LogHarness, tmp_path: Path) -> None:
    manager = LogManager([tmp_path / "logs"], LogConfig(retention_ms=0), harness.time, harness.scheduler)
    manager.startup()
    both = LogConfig(cleanup_policy=("compact", "delete"), retention_ms=0)
    for tp, config in ((A, both), (B, LogConfig(retention_ms=0))):
        put(harness, manager.get_or_create_log(tp, config=config), (b"k", b"v"), timestamp_ms=1)
    assert manager.delete_old_segments() == 1
    manager.shutdown()


def test_stopping_ends_a_round_in_the_middle(managed: Managed, slow: Slow) -> None:
    managed.dirty()
    managed.await_round(slow)
    threads = [each._thread for each in managed.cleaner._threads]
    assert [thread.is_alive() for thread in threads] == [True]
    managed.manager.shutdown()
    assert [thread.is_alive() for thread in threads] == [False]
    assert not list((managed.root / "a-0").glob("*.cleaned"))


def test_several_threads_share_the_logs(harness: LogHarness, tmp_path: Path) -> None:
    managed = Managed(harness, tmp_path / "logs", threads=3)
    logs = [managed.dirty(TopicPartition("t", i)) for i in range(6)]
    for log in logs:
        managed.cleaned_to(log, 3)
    managed.manager.shutdown()


def test_metrics_tell_of_the_last_round(managed: Managed, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    managed.cleaned_to(managed.dirty(count=4), 4)
    wait_until(lambda: managed.cleaner.metrics().cleaner_recopy_percent > 0, what="the round to be told")
    metrics = managed.cleaner.metrics()
    assert metrics.cleaner_recopy_percent == 25
    assert 0 < metrics.max_buffer_utilization_percent < 1
    wait_until(lambda: "a-0: cleaned from offset 0 to 4: 4 records" in caplog.text, what="the log")
