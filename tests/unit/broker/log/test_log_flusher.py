from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.broker.logs import TP, LogHarness
from kclient.broker.log.config import LogConfig
from kclient.broker.log.durability import AckPolicy
from kclient.broker.log.local_log import LocalLog
from kclient.broker.log.log_flusher import LogFlusher
from kclient.broker.log.log_guard import LogGuard
from kclient.errors import KafkaStorageError
from kclient.record.open_files import OpenFiles


class Flushed:
    """A flusher of a log whose end is where the test says."""

    def __init__(self, harness: LogHarness) -> None:
        self.local = LocalLog(TP, harness.directory, LogConfig(flush_ms=100), harness.time, OpenFiles(8))
        self.local.open_segment(0)
        self.guard = LogGuard(TP, harness.log_dir, self.local.files)
        self.flusher = LogFlusher(
            self.local,
            self.guard,
            harness.log_dir.commits,
            harness.scheduler,
            harness.time,
            ack_policy=AckPolicy.BATCH,
            recovery_point=0,
        )


@pytest.fixture
def flushed(harness: LogHarness) -> Iterator[Flushed]:
    made = Flushed(harness)
    yield made
    made.local.close()


def test_the_policy_says_when_an_append_is_durable(harness: LogHarness) -> None:
    for policy, at_once, later in (
        (AckPolicy.NONE, False, False),
        (AckPolicy.BATCH, False, True),
        (AckPolicy.ALWAYS, True, False),
    ):
        flusher = harness.open(ack_policy=policy).flusher
        assert (flusher.syncs_appends, flusher.commits_later) == (at_once, later)


def test_a_flush_moves_the_recovery_point_and_a_truncation_takes_it_back(flushed: Flushed) -> None:
    flushed.local.log_end_offset = 5
    flushed.flusher.flush()
    assert flushed.flusher.recovery_point == 5
    flushed.flusher.truncated_to(3)
    assert flushed.flusher.recovery_point == 3
    flushed.flusher.truncated_to(4)
    assert flushed.flusher.recovery_point == 3


def test_a_log_that_is_truncated_during_its_flush_is_not_taken_for_flushed(
    flushed: Flushed, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed.local.log_end_offset = 5

    def truncate() -> None:
        flushed.local.log_end_offset = 2
        flushed.flusher.truncated_to(2)

    monkeypatch.setattr(flushed.local, "sync_directory", truncate)
    flushed.flusher.flush()
    assert flushed.flusher.recovery_point == 2


def test_batches_that_are_committed_are_not_flushed_with_their_indexes(flushed: Flushed) -> None:
    flushed.local.log_end_offset = 5
    flushed.flusher.commit.await_durable(5)
    assert flushed.flusher.recovery_point == 0
    flushed.flusher.truncated_to(2)
    flushed.guard.closed = True
    with pytest.raises(KafkaStorageError):
        flushed.flusher.commit.await_durable(5)


def test_a_flush_in_the_background_lets_a_closed_log_be(harness: LogHarness, flushed: Flushed) -> None:
    flushed.local.log_end_offset = 5
    flushed.flusher.flush_soon()
    flushed.guard.closed = True
    harness.run_due()
    assert flushed.flusher.recovery_point == 0
    flushed.guard.closed = False
    flushed.flusher.flush_soon()
    harness.run_due()
    assert flushed.flusher.recovery_point == 5


def test_a_log_is_flushed_after_so_many_records_or_so_much_time(harness: LogHarness) -> None:
    log = harness.open(LogConfig(flush_messages=3, flush_ms=100))
    log.append_as_leader(harness.batch([b"a", b"b"]), 0)
    assert log.flusher.recovery_point == 0
    log.append_as_leader(harness.batch(), 0)
    assert log.flusher.recovery_point == 3
    log.append_as_leader(harness.batch(), 0)
    log.flusher.flush_if_due()
    assert log.flusher.recovery_point == 3
    harness.time.advance(100)
    log.flusher.flush_if_due()
    assert log.flusher.recovery_point == 4


def test_many_rolls_before_the_background_flush_cost_one(harness: LogHarness) -> None:
    log = harness.open()
    for _ in range(5):
        log.append_as_leader(harness.batch(), 0)
        log.roll()
    assert len(harness.scheduler.timer._ready) == 1
    harness.run_due()
    assert log.flusher.recovery_point == 5
    log.append_as_leader(harness.batch(), 0)
    log.roll()
    harness.run_due()
    assert log.flusher.recovery_point == 6


@pytest.mark.parametrize("policy", [AckPolicy.BATCH, AckPolicy.ALWAYS])
def test_what_a_crash_left_in_the_cache_is_forced_before_what_follows_it_is_acknowledged(
    harness: LogHarness, monkeypatch: pytest.MonkeyPatch, policy: AckPolicy
) -> None:
    config = LogConfig(segment_bytes=300)
    log = harness.open(config)
    for _ in range(3):
        log.append_as_leader(harness.batch([b"x" * 50]), 0)
    harness.crash(log)
    log = harness.open(config, ack_policy=policy)
    unforced = set(harness.directory.glob("*.log"))
    real = os.fdatasync

    def note(fd: int) -> None:
        unforced.discard(Path(os.readlink(f"/proc/self/fd/{fd}")))
        real(fd)

    monkeypatch.setattr(os, "fdatasync", note)
    # To a segment of its own. Without what is before it a power failure would take it along.
    log.append_as_leader(harness.batch([b"x" * 200]), 0)
    assert len(log.segment_base_offsets) > 2
    assert not unforced
