"""The metadata log on disk: what it gives back after any end of its writer, and which damage it does not take."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness.mock_time import MockTime
from kclient.broker.metadata.metadata_files import SnapshotId, build_batch
from kclient.broker.metadata.metadata_log import MetadataLog
from kclient.errors import KafkaStorageError
from kclient.protocol.messages.metadata_records import ConfigRecord, NoOpRecord
from kclient.protocol.schema import Message
from kclient.record.builder import MemoryRecordsBuilder


def setting(value: str) -> ConfigRecord:
    return ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value=value)


ONE, TWO, THREE = ([setting(f"{number}"), NoOpRecord()] for number in range(3))


class Logs:
    """The log of a directory, opened over and over."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        self.directory = directory
        self._stack = stack

    def found(self) -> MetadataLog:
        """The log, not started."""
        made = MetadataLog(self.directory, MockTime())
        self._stack.callback(made.close)
        return made

    def open(self) -> MetadataLog:
        made = self.found()
        list(made.read())
        made.start()
        return made

    def read(self) -> list[list[Message]]:
        return list(self.found().read())

    @property
    def names(self) -> list[str]:
        return sorted(path.name for path in self.directory.iterdir())


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[Logs]:
    with ExitStack() as stack:
        yield Logs(tmp_path / "__cluster_metadata-0", stack)


def segment(base_offset: int) -> str:
    return f"{base_offset:020d}.log"


def test_records_come_back_in_the_batches_that_they_were_written_in(logs: Logs) -> None:
    log = logs.open()
    assert [log.append(records) for records in (ONE, TWO, THREE)] == [2, 4, 6]
    assert logs.read() == [ONE, TWO, THREE]
    assert logs.names == [segment(0)]


def test_reading_changes_nothing_and_needs_nothing(logs: Logs) -> None:
    assert logs.read() == []
    assert not logs.directory.exists()


def test_every_start_has_an_epoch_of_its_own(logs: Logs) -> None:
    for epoch in range(3):
        log = logs.open()
        assert log.epoch == epoch
        log.append(ONE)
        log.close()


def test_a_change_that_was_cut_off_at_any_byte_is_left_out_and_the_next_one_takes_its_place(
    logs: Logs,
) -> None:
    log = logs.open()
    log.append(ONE)
    path = logs.directory / segment(0)
    whole = path.stat().st_size
    log.append(TWO)
    log.close()
    content = path.read_bytes()
    for length in range(whole, len(content)):
        path.write_bytes(content[:length])
        assert logs.read() == [ONE], f"cut at {length}"
        assert path.stat().st_size == length, "reading cuts nothing"
    path.write_bytes(content[:whole] + bytes(100))
    assert logs.read() == [ONE]
    log = logs.open()
    assert log.append(THREE) == 4
    assert logs.read() == [ONE, THREE]


def test_any_damage_before_the_last_change_is_an_error_as_changes_would_be_lost_without_a_word(
    logs: Logs,
) -> None:
    log = logs.open()
    log.append(ONE)
    size = (logs.directory / segment(0)).stat().st_size
    log.append(TWO)
    log.close()
    path = logs.directory / segment(0)
    content = path.read_bytes()
    for position in range(size):
        damaged = bytearray(content)
        damaged[position] ^= 1
        path.write_bytes(damaged)
        if 12 <= position < 16:
            continue  # the epoch of the leader, which no checksum covers
        with pytest.raises(KafkaStorageError, match=f"{segment(0)} is damaged at position 0, where offset 0"):
            logs.read()


def test_a_change_that_could_not_be_forced_to_disk_leaves_nothing_behind(
    logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = logs.open()
    log.append(ONE)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as failing:
        failing.setattr(os, "fdatasync", full)
        with pytest.raises(KafkaStorageError, match=rf"{logs.directory} cannot be written: .*No space left"):
            log.append(TWO)
    assert logs.read() == [ONE]
    assert log.append(THREE) == 4
    assert logs.read() == [ONE, THREE]


def test_after_a_failure_that_cannot_be_undone_nothing_is_written_until_the_next_start(
    logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = logs.open()
    log.append(ONE)

    def broken(*_: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as failing:
        failing.setattr(os, "fdatasync", broken)
        failing.setattr(os, "ftruncate", broken)
        with pytest.raises(KafkaStorageError, match="Input/output error"):
            log.append(TWO)
    with pytest.raises(KafkaStorageError, match="takes no changes until the next start"):
        log.append(THREE)
    assert logs.read() in ([ONE], [ONE, TWO])


def test_a_first_change_that_fails_leaves_no_log(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    log = logs.open()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as failing:
        failing.setattr(os, "fsync", full)
        with pytest.raises(KafkaStorageError):
            log.append(ONE)
    assert logs.read() == []
    log.append(TWO)
    assert logs.read() == [TWO]


def test_a_snapshot_stands_for_what_was_before_it_which_is_removed(logs: Logs) -> None:
    log = logs.open()
    log.append(ONE)
    log.append(TWO)
    log.write_snapshot(TWO)
    assert logs.names == [SnapshotId(4, 0).file_name]
    assert log.bytes_since_snapshot == 0
    assert logs.read() == [TWO]
    log.append(THREE)
    assert logs.names == sorted([SnapshotId(4, 0).file_name, segment(4)])
    assert logs.read() == [TWO, THREE]
    log.close()
    log = logs.open()
    assert (log.end_offset, log.epoch) == (6, 1)
    log.append(ONE)
    log.write_snapshot(ONE)
    assert logs.names == [SnapshotId(8, 1).file_name]


def test_what_a_crash_left_beside_a_snapshot_is_passed_over(logs: Logs) -> None:
    log = logs.open()
    log.append(ONE)
    log.append(TWO)
    before = (logs.directory / segment(0)).read_bytes()
    log.write_snapshot(TWO)
    log.append(THREE)
    log.close()
    (logs.directory / segment(0)).write_bytes(before)  # was not yet removed
    (logs.directory / f"{SnapshotId(6, 0).file_name}.part").write_bytes(b"half")
    (logs.directory / f"{segment(6)}.tmp").write_bytes(b"half")
    assert logs.read() == [TWO, THREE]
    log = logs.open()
    assert log.append(ONE) == 8
    assert logs.read() == [TWO, THREE, ONE]
    assert logs.names == sorted([SnapshotId(4, 0).file_name, segment(0), segment(4)])


def test_a_log_that_was_left_beside_its_snapshot_goes_on_behind_it(logs: Logs) -> None:
    log = logs.open()
    log.append(ONE)
    before = (logs.directory / segment(0)).read_bytes()
    log.write_snapshot(ONE)
    log.close()
    (logs.directory / segment(0)).write_bytes(before)
    assert logs.read() == [ONE]
    logs.open().append(TWO)
    assert logs.read() == [ONE, TWO]


@pytest.mark.parametrize("cut", [1, 70, 200])
def test_a_snapshot_that_is_not_whole_is_an_error(logs: Logs, cut: int) -> None:
    log = logs.open()
    log.append(ONE)
    log.write_snapshot(ONE)
    path = logs.directory / SnapshotId(2, 0).file_name
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(KafkaStorageError, match=path.name):
        logs.read()


def test_records_that_are_missing_between_files_are_an_error(logs: Logs) -> None:
    log = logs.open()
    log.append(ONE)
    log.write_snapshot(ONE)
    log.append(TWO)
    log.close()
    (logs.directory / SnapshotId(2, 0).file_name).unlink()
    with pytest.raises(KafkaStorageError, match="goes on at offset 2 behind 0"):
        logs.read()


def test_a_batch_that_is_whole_and_holds_no_metadata_is_an_error(logs: Logs) -> None:
    logs.directory.mkdir()
    builder = MemoryRecordsBuilder()
    builder.append(0, None, b"\x01\x63\x00\x00")
    (logs.directory / segment(0)).write_bytes(builder.close())
    with pytest.raises(KafkaStorageError, match=rf"{segment(0)} at offset 0: .*type 99 is not known"):
        logs.read()


def test_a_log_that_is_closed_takes_no_changes(logs: Logs) -> None:
    log = logs.open()
    log.close()
    log.close()
    with pytest.raises(KafkaStorageError, match="takes no changes"):
        log.append(ONE)


def test_a_batch_of_records_is_numbered_from_its_offset_on() -> None:
    assert build_batch(ONE, 7, 3, 5)[:8] == (7).to_bytes(8, "big")


def test_names_of_snapshots_are_those_of_kafka() -> None:
    name = "00000000000000000012-0000000003.checkpoint"
    assert SnapshotId.parse(name) == SnapshotId(12, 3)
    assert SnapshotId(12, 3).file_name == name
    assert SnapshotId.parse("00000000000000000012-0000000003.checkpoint.part") is None
    assert SnapshotId.parse("bootstrap.checkpoint") is None
