from __future__ import annotations

import errno

import pytest

from harness.broker.logs import TP, LogHarness
from kclient.broker.log.log_guard import LogGuard
from kclient.errors import KafkaStorageError
from kclient.record.open_files import OpenFiles


class Pinned:
    """As much of a segment as a guard needs."""

    def __init__(self) -> None:
        self.pins = 1

    def unpin(self) -> None:
        self.pins -= 1


@pytest.fixture
def guard(harness: LogHarness) -> LogGuard:
    return LogGuard(TP, harness.log_dir, OpenFiles(8))


def test_a_closed_log_is_not_usable(guard: LogGuard) -> None:
    guard.check_usable()
    assert guard.usable
    guard.closed = True
    assert not guard.usable
    with pytest.raises(KafkaStorageError, match="is closed"):
        guard.check_usable()


def test_a_disk_that_fails_takes_the_directory_offline(harness: LogHarness, guard: LogGuard) -> None:
    error = OSError(errno.EIO, "broken")
    with pytest.raises(KafkaStorageError, match="testing") as raised, guard.disk("testing"):
        raise error
    assert raised.value.__cause__ is error
    assert harness.log_dir.offline_error is not None
    assert not guard.usable


def test_the_disk_is_not_to_blame_for_a_log_that_was_closed_meanwhile(
    harness: LogHarness, guard: LogGuard
) -> None:
    guard.closed = True
    with pytest.raises(KafkaStorageError, match="is closed"), guard.disk("testing"):
        raise FileNotFoundError
    assert harness.log_dir.offline_error is None


def test_without_descriptors_the_directory_stays_online(harness: LogHarness, guard: LogGuard) -> None:
    with pytest.raises(KafkaStorageError), guard.disk("testing"):
        raise OSError(errno.EMFILE, "too many")
    assert harness.log_dir.offline_error is None


def test_other_errors_pass_and_pinned_segments_are_let_go_in_any_case(
    harness: LogHarness, guard: LogGuard
) -> None:
    segments = [Pinned(), Pinned(), Pinned()]
    with guard.disk("testing", segments[:1]):  # type: ignore[arg-type]
        assert segments[0].pins == 1
    with pytest.raises(ValueError, match="mine"), guard.disk("testing", segments[1:2]):  # type: ignore[arg-type]
        raise ValueError("mine")
    with pytest.raises(KafkaStorageError), guard.disk("testing", segments[2:]):  # type: ignore[arg-type]
        raise OSError(errno.EIO, "broken")
    assert [segment.pins for segment in segments] == [0, 0, 0]
