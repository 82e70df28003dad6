"""Waits for the disk: what a log forces there, when, and what is left out because there is nothing to keep."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.broker.logs import LogHarness
from kclient.broker.log.config import LogConfig
from kclient.broker.log.log_manager import LogManager
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import InconsistentTopicIdError

TOPIC = Uuid(bytes(15) + b"t")
PARTITIONS = [TopicPartition("t", number) for number in range(20)]


class Disk:
    """Notes the paths that are forced to disk."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.forced: list[str] = []
        for name in ("fsync", "fdatasync"):
            monkeypatch.setattr(os, name, self._noting(getattr(os, name)))

    def _noting(self, real: object) -> object:
        def force(fd: int) -> None:
            self.forced.append(os.readlink(f"/proc/self/fd/{fd}"))
            real(fd)  # type: ignore[operator]

        return force

    def take(self) -> list[str]:
        """Names of what was forced since the last call."""
        forced, self.forced = self.forced, []
        return [Path(path).name for path in forced]


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "logs"


def started(root: Path, harness: LogHarness) -> LogManager:
    manager = LogManager([root], LogConfig(), harness.time, harness.scheduler)
    manager.startup()
    return manager


def test_partitions_without_records_are_made_and_closed_without_waiting_for_the_disk(
    root: Path, harness: LogHarness, disk: Disk
) -> None:
    for _ in range(2):
        manager = started(root, harness)
        disk.take()
        for tp in PARTITIONS:
            manager.get_or_create_log(tp, TOPIC)
        assert disk.take() == []
        manager.shutdown()
        # Three checkpoints and the marker of a clean shutdown, with the directory behind each.
        assert len(disk.take()) == 8
    assert all((root / f"{tp}" / "partition.metadata").exists() for tp in PARTITIONS)


def test_the_first_records_take_the_directory_to_disk_with_them(
    root: Path, harness: LogHarness, disk: Disk
) -> None:
    manager = started(root, harness)
    log = manager.get_or_create_log(PARTITIONS[0], TOPIC)
    for expected in (["partition.metadata", "logs", "t-0"], []):
        log.append_as_leader(harness.batch(), 0)
        disk.take()
        log.flusher.flush()
        assert disk.take() == [f"{0:020d}.log", f"{0:020d}.index", f"{0:020d}.timeindex", *expected]
    manager.shutdown()


def test_a_partition_that_was_empty_at_a_clean_shutdown_is_as_new(
    root: Path, harness: LogHarness, disk: Disk
) -> None:
    manager = started(root, harness)
    manager.get_or_create_log(PARTITIONS[0], TOPIC)
    manager.shutdown()
    manager = started(root, harness)
    log = manager.get_or_create_log(PARTITIONS[0])
    log.append_as_leader(harness.batch(), 0)
    disk.take()
    log.flusher.flush()
    assert disk.take()[-3:] == ["partition.metadata", "logs", "t-0"]
    manager.shutdown()


def test_what_a_crash_left_is_all_forced_again(root: Path, harness: LogHarness, disk: Disk) -> None:
    manager = started(root, harness)
    for tp in PARTITIONS[:2]:
        manager.get_or_create_log(tp, TOPIC)
    manager.get_or_create_log(PARTITIONS[0]).append_as_leader(harness.batch(), 0)
    manager._abandon()
    manager = started(root, harness)
    disk.take()
    manager.shutdown()
    forced = disk.take()
    assert [forced.count(name) for name in ("t-0", "t-1", f"{0:020d}.log")] == [1, 1, 2]


def test_a_log_that_was_flushed_is_closed_without_waiting_for_the_disk(
    root: Path, harness: LogHarness, disk: Disk
) -> None:
    manager = started(root, harness)
    log = manager.get_or_create_log(PARTITIONS[0])
    log.append_as_leader(harness.batch(), 0)
    log.flusher.flush()
    disk.take()
    log.flusher.flush_rest()
    assert disk.take() == []
    log.roll()
    log.flusher.flush_rest()
    assert "t-0" in disk.take(), "the new segment is to be found again"
    manager.shutdown()


def test_a_directory_of_another_topic_is_still_found_out_when_its_partition_is_made(
    root: Path, harness: LogHarness
) -> None:
    manager = started(root, harness)
    manager.get_or_create_log(PARTITIONS[0], TOPIC)
    manager.shutdown()
    manager = LogManager([root], LogConfig(), harness.time, harness.scheduler)
    manager.startup(partitions=manager.find_partitions()[1:])
    with pytest.raises(InconsistentTopicIdError, match="has topic id"):
        manager.get_or_create_log(PARTITIONS[0], Uuid.random())
    manager.shutdown()
