"""Many logs in several directories: started, found again, deleted, shut down."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.broker.logs import LogHarness, append_alone, read_all
from harness.mock_time import MockTime
from kclient.broker.log.config import LogConfig
from kclient.broker.log.log_manager import LogManager
from kclient.broker.timer import Scheduler
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import (
    IllegalStateError,
    InconsistentClusterIdError,
    InconsistentTopicIdError,
    KafkaStorageError,
)

A0 = TopicPartition("a", 0)
A1 = TopicPartition("a", 1)
B0 = TopicPartition("b", 0)


class Managers:
    """Starts managers over the same directories and stops all at the end."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.time = MockTime()
        self.made: list[LogManager] = []
        self.scheduler = Scheduler("test", self.time)

    def start(self, *names: str, configs: object = None, **options: object) -> LogManager:
        dirs = [self.root / name for name in names or ("d",)]
        self.scheduler = Scheduler("test", self.time)
        manager = LogManager(dirs, LogConfig(), self.time, self.scheduler, **options)
        manager.startup(configs)
        self.made.append(manager)
        return manager

    def kill(self, manager: LogManager) -> None:
        """Let go of everything as a killed process does."""
        manager._abandon()
        manager._loaded = False

    def run_due(self, after_ms: int = 0) -> None:
        self.time.advance(after_ms)
        while self.scheduler.timer.advance_clock(0):
            pass

    def close(self) -> None:
        for manager in self.made:
            manager.shutdown()


@pytest.fixture
def managers(tmp_path: Path) -> Iterator[Managers]:
    made = Managers(tmp_path)
    yield made
    made.close()


@pytest.fixture
def batch(harness: LogHarness) -> object:
    return harness.batch


def append(manager: LogManager, tp: TopicPartition, harness: LogHarness, **fields: object) -> int:
    log = manager.get_or_create_log(tp)
    return append_alone(log, harness.batch(**fields)).first_offset


def test_logs_survive_a_clean_restart(managers: Managers, harness: LogHarness) -> None:
    manager = managers.start()
    topic_id = Uuid.random()
    manager.get_or_create_log(A0, topic_id)
    for tp in (A0, A1, A0, B0):
        append(manager, tp, harness)
    manager.shutdown()
    manager.shutdown()
    marker = managers.root / "d" / ".kafka_cleanshutdown"
    assert json.loads(marker.read_text()) == {"version": 0, "brokerEpoch": -1}
    checkpoint = (managers.root / "d" / "recovery-point-offset-checkpoint").read_text()
    assert checkpoint == "0\n3\na 0 2\na 1 1\nb 0 1\n"
    manager = managers.start()
    assert not marker.exists()
    assert [log.topic_partition for log in manager.all_logs()] == [A0, A1, B0]
    log = manager.get_log(A0)
    assert log is not None
    assert (log.topic_id, log.log_end_offset) == (topic_id, 2)
    assert manager.get_log(TopicPartition("c", 0)) is None


def test_an_unclean_stop_recovers_from_the_recovery_point_on(managers: Managers, harness: LogHarness) -> None:
    manager = managers.start()
    for _ in range(3):
        append(manager, A0, harness)
    managers.kill(manager)
    path = managers.root / "d" / "a-0" / f"{0:020d}.log"
    path.write_bytes(path.read_bytes()[:-1])
    log = managers.start().get_log(A0)
    assert log is not None
    assert log.log_end_offset == 2


def test_a_retry_after_a_restart_gets_its_first_offset(managers: Managers, harness: LogHarness) -> None:
    sent = harness.batch([b"a", b"b"], pid=1)
    manager = managers.start()
    append(manager, A0, harness)
    assert manager.get_or_create_log(A0).append_as_leader(sent, 0).first_offset == 1
    manager.shutdown()
    manager = managers.start()
    info = manager.get_or_create_log(A0).append_as_leader(sent, 1)
    assert (info.first_offset, info.is_duplicate) == (1, True)
    managers.kill(manager)
    info = managers.start().get_or_create_log(A0).append_as_leader(sent, 2)
    assert (info.first_offset, info.is_duplicate) == (1, True)


def test_each_topic_gets_its_settings_at_startup(managers: Managers, harness: LogHarness) -> None:
    manager = managers.start()
    append(manager, A0, harness)
    append(manager, B0, harness)
    manager.shutdown()
    special = LogConfig(retention_ms=5)
    manager = managers.start(configs=lambda topic: special if topic == "b" else LogConfig())
    assert [log.config.retention_ms for log in manager.all_logs()] == [LogConfig().retention_ms, 5]


def test_a_second_broker_on_the_directory_is_refused(managers: Managers) -> None:
    manager = managers.start("d")
    with pytest.raises(IllegalStateError, match=r"in use by another broker.*\.lock"):
        managers.start("d")
    code = (
        "import sys; from kclient.broker.log.log_manager import LogManager\n"
        "from kclient.errors import IllegalStateError\n"
        f"m = LogManager([{str(managers.root / 'd')!r}])\n"
        "try: m.startup()\n"
        "except IllegalStateError as error: print(error)\n"
        "else: m.shutdown()\n"
    )

    def other_process() -> str:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        return subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
            env=environment,
        ).stdout

    assert "in use by another broker" in other_process()
    manager.shutdown()
    assert other_process() == ""
    managers.start("d").shutdown()


def test_a_refused_second_start_does_not_take_the_lock_from_the_first(managers: Managers) -> None:
    managers.start("d")
    for _ in range(2):
        with pytest.raises(IllegalStateError):
            managers.start("e", "d")
    managers.start("e")  # the refused one let go of what it had locked


def test_directories_belong_to_a_cluster_and_a_node(managers: Managers) -> None:
    manager = managers.start("d", cluster_id="mine", node_id=3)
    text = (managers.root / "d" / "meta.properties").read_text()
    assert {"cluster.id=mine", "node.id=3", "version=1"} <= set(text.splitlines())
    manager.shutdown()
    for options in ({"cluster_id": "other", "node_id": 3}, {"cluster_id": "mine", "node_id": 4}):
        with pytest.raises(InconsistentClusterIdError):
            managers.start("d", **options)
    assert managers.start("d", node_id=3).cluster_id == "mine"


def test_directories_of_different_clusters_do_not_mix(managers: Managers) -> None:
    managers.start("d", cluster_id="one").shutdown()
    managers.start("e", cluster_id="two").shutdown()
    with pytest.raises(InconsistentClusterIdError):
        managers.start("d", "e")


def test_new_logs_go_to_the_directory_with_the_fewest(managers: Managers) -> None:
    manager = managers.start("d", "e")
    for partition in range(5):
        manager.get_or_create_log(TopicPartition("t", partition))
    counts = [len(list((managers.root / name).glob("t-*"))) for name in ("d", "e")]
    assert counts == [3, 2]


def test_a_log_of_an_earlier_topic_of_the_same_name_is_refused(managers: Managers) -> None:
    manager = managers.start()
    manager.get_or_create_log(A0, Uuid.random())
    with pytest.raises(InconsistentTopicIdError):
        manager.get_or_create_log(A0, Uuid.random())


def test_a_deleted_log_is_gone_at_once_and_its_files_later(managers: Managers, harness: LogHarness) -> None:
    manager = managers.start()
    old = manager.get_or_create_log(A0, Uuid.random(), LogConfig(file_delete_delay_ms=1000))
    append(manager, A0, harness)
    manager.delete_log(A0)
    manager.delete_log(A0)
    assert manager.get_log(A0) is None
    with pytest.raises(KafkaStorageError):
        old.read(0, 10)
    (renamed,) = (managers.root / "d").glob("*-delete")
    assert append(manager, A0, harness) == 0
    managers.run_due(999)
    assert renamed.exists()
    managers.run_due(1)
    assert not renamed.exists()
    assert manager.get_or_create_log(A0).log_end_offset == 1


def test_what_is_left_of_deleted_logs_goes_at_the_next_start(managers: Managers, harness: LogHarness) -> None:
    manager = managers.start()
    append(manager, A0, harness)
    manager.delete_log(A0)
    manager.shutdown()
    assert list((managers.root / "d").glob("*-delete"))
    manager = managers.start()
    assert not list((managers.root / "d").glob("*-delete"))
    assert manager.all_logs() == []


def test_a_long_topic_name_can_be_deleted(managers: Managers) -> None:
    manager = managers.start()
    tp = TopicPartition("x" * 249, 0)
    manager.get_or_create_log(tp)
    manager.delete_log(tp)
    assert len(list((managers.root / "d").glob("*-delete"))) == 1


def test_the_work_behind_the_logs_is_done_in_time(managers: Managers, harness: LogHarness) -> None:
    manager = managers.start()
    manager.get_or_create_log(A0, None, LogConfig(retention_ms=1000, flush_ms=2000))
    append(manager, A0, harness, timestamp_ms=managers.time.wall_ms())
    managers.run_due(3000)
    log = manager.get_log(A0)
    assert log is not None
    assert log.flusher.recovery_point == 1
    managers.run_due(57_000)
    assert (managers.root / "d" / "recovery-point-offset-checkpoint").read_text() == "0\n1\na 0 1\n"
    assert log.log_start_offset == 0
    managers.run_due(240_000)
    assert log.log_start_offset == 1


def test_a_start_offset_within_a_segment_is_kept(managers: Managers, harness: LogHarness) -> None:
    manager = managers.start()
    for _ in range(4):
        append(manager, A0, harness)
    manager.get_or_create_log(A0).delete_records_before(3)
    managers.run_due(60_000)
    assert (managers.root / "d" / "log-start-offset-checkpoint").read_text() == "0\n1\na 0 3\n"
    managers.kill(manager)
    log = managers.start().get_or_create_log(A0)
    assert (log.log_start_offset, log.log_end_offset) == (3, 4)
    assert [record.offset for record in read_all(log)] == [3]


@pytest.mark.parametrize(
    "damage", [b"", b"garbage", b"\xff\xfe\x00", b"0\n7\na 0 3\n", b"0\n1\na zero three\n", b"1\n0\n"]
)
def test_damaged_checkpoints_cost_work_and_no_records(
    managers: Managers, harness: LogHarness, damage: bytes
) -> None:
    manager = managers.start()
    for _ in range(4):
        append(manager, A0, harness)
    manager.shutdown()
    for name in ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint"):
        (managers.root / "d" / name).write_bytes(damage)
        (managers.root / "d" / (name + ".tmp")).write_bytes(b"0\n99")
    (managers.root / "d" / ".kafka_cleanshutdown").unlink()
    log = managers.start().get_or_create_log(A0)
    assert (log.log_start_offset, log.log_end_offset) == (0, 4)


def test_a_checkpoint_ahead_of_the_log_is_clamped(managers: Managers, harness: LogHarness) -> None:
    manager = managers.start()
    append(manager, A0, harness)
    managers.kill(manager)
    (managers.root / "d" / "recovery-point-offset-checkpoint").write_text("0\n1\na 0 1000\n")
    log = managers.start().get_or_create_log(A0)
    assert (log.log_end_offset, log.flusher.recovery_point) == (1, 1)


def test_foreign_files_and_directories_are_left_alone(managers: Managers, harness: LogHarness) -> None:
    manager = managers.start()
    append(manager, A0, harness)
    manager.shutdown()
    for name in ("lost+found", "a-0-future", "b-0.x-stray"):
        (managers.root / "d" / name).mkdir()
    (managers.root / "d" / "notes.txt").write_text("mine")
    manager = managers.start()
    assert [log.topic_partition for log in manager.all_logs()] == [A0]
    assert (managers.root / "d" / "lost+found").exists()


def test_the_same_partition_in_two_directories_is_refused(managers: Managers) -> None:
    for name in ("d", "e"):
        manager = managers.start(name, cluster_id="one")
        manager.get_or_create_log(A0)
        manager.shutdown()
    with pytest.raises(IllegalStateError, match="a-0"):
        managers.start("d", "e")


def test_one_failed_directory_leaves_the_others_at_work(
    managers: Managers, harness: LogHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = managers.start("d", "e")
    for tp in (A0, B0):
        append(manager, tp, harness)
    one, two = manager.get_or_create_log(A0), manager.get_or_create_log(B0)
    assert one.log_dir is not two.log_dir
    with monkeypatch.context() as broken:

        def full(*_: object) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        broken.setattr(os, "pwritev", full)
        with pytest.raises(KafkaStorageError):
            one.append_as_leader(harness.batch(), 0)
    assert manager.live_log_dirs == [two.log_dir]
    assert append(manager, B0, harness) == 1
    assert manager.get_or_create_log(TopicPartition("new", 0)).log_dir is two.log_dir
    assert manager.delete_old_segments() == 0
    manager.shutdown()
    assert not (one.log_dir.path / ".kafka_cleanshutdown").exists()
    assert (two.log_dir.path / ".kafka_cleanshutdown").exists()
    manager = managers.start("d", "e")
    assert [log.log_end_offset for log in manager.all_logs()] == [1, 2, 0]


def test_a_checkpoint_that_cannot_be_written_takes_its_directory_offline(
    managers: Managers, harness: LogHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = managers.start("d")
    append(manager, A0, harness)
    with monkeypatch.context() as broken:

        def full(*_: object) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        broken.setattr(os, "pwrite", full)
        manager.checkpoint_recovery_points()
    assert manager.live_log_dirs == []
    with pytest.raises(KafkaStorageError):
        append(manager, A0, harness)
    with pytest.raises(KafkaStorageError, match="offline"):
        manager.get_or_create_log(B0)


def test_a_manager_with_a_scheduler_of_its_own_leaves_no_thread(tmp_path: Path) -> None:
    import threading

    manager = LogManager([tmp_path / "d"])
    manager.startup()
    assert any(thread.name == "scheduler-log-manager" for thread in threading.enumerate())
    with pytest.raises(IllegalStateError):
        manager.startup()
    manager.shutdown()
    assert not any(thread.name == "scheduler-log-manager" for thread in threading.enumerate())
    with pytest.raises(IllegalStateError):
        manager.get_or_create_log(A0)


def test_a_manager_needs_a_directory(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="directory"):
        LogManager([])
    (tmp_path / "file").write_text("")
    manager = LogManager([tmp_path / "file"])
    with pytest.raises(KafkaStorageError, match="No log directory"):
        manager.startup()


def test_a_log_deleted_during_its_flush_does_not_take_the_directory_offline(
    managers: Managers, harness: LogHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = managers.start()
    log = manager.get_or_create_log(A0)
    append(manager, A0, harness)
    real = os.fdatasync

    def delete_meanwhile(fd: int) -> None:
        real(fd)
        manager.delete_log(A0)

    monkeypatch.setattr(os, "fdatasync", delete_meanwhile)
    with pytest.raises(KafkaStorageError, match="closed"):
        log.flusher.flush()
    assert [log_dir.offline_error for log_dir in manager.log_dirs] == [None]


def test_background_work_after_a_shutdown_changes_nothing(managers: Managers, harness: LogHarness) -> None:
    manager = managers.start()
    for _ in range(3):
        append(manager, A0, harness)
    manager.get_or_create_log(A0).delete_records_before(2)
    manager.shutdown()
    managers.run_due(10_000_000)
    manager.checkpoint_log_start_offsets()
    manager.checkpoint_recovery_points()
    assert (managers.root / "d" / "log-start-offset-checkpoint").read_text() == "0\n1\na 0 2\n"
    assert managers.start().get_or_create_log(A0).log_start_offset == 2
