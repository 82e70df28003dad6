"""A disk that fails takes its directory offline; nothing half-written stays, nothing is acknowledged."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.broker.logs import TP, LogHarness, read_all
from harness.programs import environment
from kclient.broker.log.config import LogConfig
from kclient.broker.log.durability import AckPolicy
from kclient.errors import Errors, KafkaStorageError


class Disk:
    """Makes system calls fail when told to, as a full or broken disk does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch

    def fail(self, call: str, code: int, *, after: int = 0, partial: bool = False) -> list[int]:
        """Let `os.<call>` fail after `after` good calls; a partial write writes half before.

        Returns the fds it failed for.
        """
        real = getattr(os, call)
        left = [after]
        failed: list[int] = []

        def broken(fd: int, *args: object) -> object:
            if left[0] > 0:
                left[0] -= 1
                return real(fd, *args)
            if partial and not failed:
                failed.append(fd)
                (buffers, position) = args
                data = b"".join(buffers)
                return os.pwrite(fd, data[: len(data) // 2], position)
            failed.append(fd)
            raise OSError(code, os.strerror(code))

        self._monkeypatch.setattr(os, call, broken)
        return failed

    def heal(self) -> None:
        self._monkeypatch.undo()


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def test_a_full_disk_cuts_the_partial_write_back_and_goes_offline(harness: LogHarness, disk: Disk) -> None:
    log = harness.open()
    log.append_as_leader(harness.batch([b"before"], pid=1), 0)
    size = log.size
    failed = disk.fail("pwritev", errno.ENOSPC, partial=True)
    with pytest.raises(KafkaStorageError, match="No space left") as caught:
        log.append_as_leader(harness.batch([b"lost" * 100], pid=1, seq=1), 0)
    assert Errors.code_for(caught.value) == 56
    assert len(failed) == 2  # half was written, the other half not
    assert os.stat(harness.directory / f"{0:020d}.log").st_size == size
    assert log.log_end_offset == 1
    assert harness.log_dir.offline_error is not None
    disk.heal()
    for use in (
        lambda: log.append_as_leader(harness.batch(), 0),
        lambda: log.read(0, 10),
        log.flusher.flush,
        log.roll,
    ):
        with pytest.raises(KafkaStorageError, match="offline"):
            use()


def test_after_a_restart_the_producer_retries_what_was_refused(harness: LogHarness, disk: Disk) -> None:
    log = harness.open()
    log.append_as_leader(harness.batch([b"a"], pid=1), 0)
    disk.fail("pwritev", errno.ENOSPC, partial=True)
    retried = harness.batch([b"b"], pid=1, seq=1)
    with pytest.raises(KafkaStorageError):
        log.append_as_leader(retried, 0)
    disk.heal()
    log.close()
    harness.log_dir._error = None
    log = harness.open()
    info = log.append_as_leader(retried, 0)
    assert (info.is_duplicate, info.first_offset) == (False, 1)
    assert [record.value for record in read_all(log)] == [b"a", b"b"]


@pytest.mark.parametrize("call", ["pwrite", "open"])
def test_a_disk_that_fails_while_rolling_refuses_the_append(
    harness: LogHarness, disk: Disk, call: str
) -> None:
    log = harness.open(LogConfig(segment_bytes=300, index_interval_bytes=0))
    for i in range(3):
        log.append_as_leader(harness.batch([b"x"], pid=1, seq=i), 0)
    disk.fail(call, errno.ENOSPC)
    with pytest.raises(KafkaStorageError):
        log.append_as_leader(harness.batch([b"x" * 100], pid=1, seq=3), 0)
    disk.heal()
    log.close()
    harness.log_dir._error = None
    log = harness.open(LogConfig(segment_bytes=300, index_interval_bytes=0))
    assert log.log_end_offset == 3
    assert log.append_as_leader(harness.batch([b"x" * 100], pid=1, seq=3), 0).first_offset == 3


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE])
@pytest.mark.parametrize("after", range(4))
def test_without_descriptors_a_roll_is_refused_and_works_when_there_are_some(
    harness: LogHarness, disk: Disk, code: int, after: int
) -> None:
    config = LogConfig(segment_bytes=300, index_interval_bytes=0)
    log = harness.open(config)
    for i in range(3):
        log.append_as_leader(harness.batch([b"x"], pid=1, seq=i), 0)
    failed = disk.fail("open", code, after=after)
    for _ in range(2):
        with pytest.raises(KafkaStorageError, match=os.strerror(code)):
            log.append_as_leader(harness.batch([b"y" * 100], pid=1, seq=3), 0)
    assert failed
    disk.heal()
    assert log.append_as_leader(harness.batch([b"y" * 100], pid=1, seq=3), 0).first_offset == 3
    assert len(log.segment_base_offsets) == 2
    log.flusher.flush()
    harness.crash(log)
    log = harness.open(config)
    assert [record.value for record in read_all(log)] == [b"x", b"x", b"x", b"y" * 100]


def test_without_descriptors_nothing_is_taken_for_durable(harness: LogHarness, disk: Disk) -> None:
    log = harness.open(ack_policy=AckPolicy.BATCH)
    failed = disk.fail("fdatasync", errno.EMFILE)
    with pytest.raises(KafkaStorageError):
        log.append_as_leader(harness.batch([b"a"], pid=1), 0)
    disk.heal()
    assert failed
    assert log.append_as_leader(harness.batch([b"a"], pid=1), 0).is_duplicate
    assert log.log_dir.offline_error is None


def test_old_segments_are_deleted_without_descriptors_or_later(harness: LogHarness, disk: Disk) -> None:
    config = LogConfig(segment_bytes=300, index_interval_bytes=0, retention_bytes=0, file_delete_delay_ms=0)
    log = harness.open(config)
    for _ in range(9):
        log.append_as_leader(harness.batch([b"x" * 100]), 0)
    log.close()
    log = harness.open(config, clean=True)
    disk.fail("open", errno.EMFILE, after=3)
    with pytest.raises(KafkaStorageError):
        log.delete_old_segments()
    disk.heal()
    log.delete_old_segments()
    assert log.log_start_offset == log.segment_base_offsets[0]
    log.append_as_leader(harness.batch([b"last"]), 0)
    assert read_all(log)[-1].value == b"last"


def test_an_index_that_cannot_be_written_fails_the_flush_and_not_the_append(
    harness: LogHarness, disk: Disk
) -> None:
    log = harness.open(LogConfig(index_interval_bytes=0))
    log.append_as_leader(harness.batch(), 0)
    disk.fail("pwrite", errno.ENOSPC)
    log.append_as_leader(harness.batch(), 0)
    with pytest.raises(KafkaStorageError):
        log.flusher.flush()
    assert log.flusher.recovery_point == 0


@pytest.mark.parametrize("policy", [AckPolicy.BATCH, AckPolicy.ALWAYS])
def test_a_failed_fdatasync_is_never_tried_again(harness: LogHarness, disk: Disk, policy: AckPolicy) -> None:
    log = harness.open(ack_policy=policy)
    log.append_as_leader(harness.batch(), 0)
    failed = disk.fail("fdatasync", errno.EIO)
    with pytest.raises(KafkaStorageError, match="Input/output"):
        log.append_as_leader(harness.batch(), 0)
    with pytest.raises(KafkaStorageError):
        log.append_as_leader(harness.batch(), 0)
    with pytest.raises(KafkaStorageError):
        log.flusher.flush()
    assert len(failed) == 1


def test_a_failed_flush_does_not_move_the_recovery_point(harness: LogHarness, disk: Disk) -> None:
    log = harness.open()
    log.append_as_leader(harness.batch(), 0)
    disk.fail("fdatasync", errno.EIO)
    with pytest.raises(KafkaStorageError):
        log.flusher.flush()
    assert log.flusher.recovery_point == 0


@pytest.mark.parametrize("policy", [AckPolicy.BATCH, AckPolicy.ALWAYS])
def test_a_durable_append_returns_after_the_fdatasync_of_its_segment(
    harness: LogHarness, monkeypatch: pytest.MonkeyPatch, policy: AckPolicy
) -> None:
    log = harness.open(LogConfig(segment_bytes=300), ack_policy=policy)
    synced: set[str] = set()
    real = os.fdatasync

    def note(fd: int) -> None:
        synced.add(f"{os.readlink(f'/proc/self/fd/{fd}')}:{os.fstat(fd).st_size}")
        real(fd)

    monkeypatch.setattr(os, "fdatasync", note)
    for _ in range(6):
        log.append_as_leader(harness.batch([b"x" * 50]), 0)
        active = log._local.segments.active
        assert f"{active.path}:{active.size}" in synced
    assert len(log.segment_base_offsets) > 1


LIMITED = """
import signal
from pathlib import Path
from harness.broker.logs import LogHarness
from kclient.errors import KafkaStorageError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
harness = LogHarness(Path({root!r}))
log = harness.open()
acked = 0
try:
    while True:
        acked = log.append_as_leader(harness.batch([b"x" * 1000]), 0).last_offset + 1
except KafkaStorageError as error:
    print(acked, log.log_end_offset, type(error.__cause__).__name__)
harness.close()
"""


def test_a_real_limit_of_the_file_size_leaves_whole_batches_only(tmp_path: Path) -> None:
    root = tmp_path / "limited"
    root.mkdir()
    code = LIMITED.format(root=str(root))
    limit = 100_000
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
        env=environment(),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    acked, end, cause = done.stdout.split()
    assert (int(acked), cause) == (int(end), "OSError")
    size = (root / "t-0" / f"{0:020d}.log").stat().st_size
    assert 0 < size <= limit
    (root / "t-0").rename(root / "kept")
    harness = LogHarness(root)
    (root / "t-0").rmdir()
    (root / "kept").rename(root / "t-0")
    log = harness.open()
    assert (log.log_end_offset, log.size) == (int(acked), size)
    assert log.topic_partition == TP
    harness.close()


APPENDING = """
import sys
from pathlib import Path
from kclient.broker.log.config import LogConfig
from kclient.broker.log.log_manager import LogManager
from kclient.common.topic_partition import TopicPartition
from kclient.record import MemoryRecordsBuilder
manager = LogManager([Path({root!r})], LogConfig(segment_bytes=20_000, index_interval_bytes=500))
manager.startup()
log = manager.get_or_create_log(TopicPartition("t", 0))
seq = offset = log.log_end_offset
print("begins", offset, flush=True)
while True:
    builder = MemoryRecordsBuilder(producer_id=7, producer_epoch=0, base_sequence=offset)
    for i in range(1 + offset % 3):
        builder.append(1_700_000_000_000 + offset, None, b"%d" % (offset + i) + b"." * (offset % 700))
    offset = log.append_as_leader(builder.close(), 0).last_offset + 1
    sys.stdout.write(f"{{offset}}\\n")
    sys.stdout.flush()
"""


@pytest.mark.heavy
def test_everything_acknowledged_survives_kill_9(tmp_path: Path) -> None:
    from kclient.broker.log.log_manager import LogManager

    code = APPENDING.format(root=str(tmp_path))
    acked = 0
    for round_ in range(6):
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        begins = int(process.stdout.readline().split()[1])
        # What was acknowledged is there, and at most the one append that was under way came on top.
        assert acked <= begins <= acked + 3
        lines = 40 + 137 * round_
        for _ in range(lines):
            acked = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        rest = process.stdout.read().split("\n")
        process.stdout.close()
        process.wait(10)
        complete = [int(line) for line in rest[:-1] if line]
        acked = complete[-1] if complete else acked
    manager = LogManager([tmp_path], LogConfig(segment_bytes=20_000, index_interval_bytes=500))
    manager.startup()
    log = manager.get_log(TP)
    assert log is not None
    records = read_all(log)
    assert len(records) >= acked
    for offset, record in enumerate(records):
        assert record.offset == offset
        assert record.value is not None
        assert record.value.split(b".")[0] == b"%d" % offset
    manager.shutdown()
