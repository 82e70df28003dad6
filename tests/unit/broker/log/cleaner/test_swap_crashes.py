"""A crash at any moment of a swap leaves the log as it was, or as it was to be."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.broker.cleaning import batches_of, clean, committed, end_transaction, last_values, put
from harness.broker.logs import LogHarness
from kclient.broker.log.config import LogConfig
from kclient.broker.log.unified_log import UnifiedLog

CONFIG = LogConfig(
    cleanup_policy=("compact",),
    segment_bytes=2000,
    index_interval_bytes=100,
    file_delete_delay_ms=0,
    delete_retention_ms=0,
)


class Crash(BaseException):
    """The power has failed."""


class Power:
    """Fails before one of the operations that change the disk."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = 0
        for name in (
            "replace",
            "rename",
            "unlink",
            "open",
            "pwrite",
            "pwritev",
            "ftruncate",
            "fdatasync",
            "fsync",
        ):
            self._watch(monkeypatch, os, name)
        for name in ("replace", "rename", "unlink"):
            self._watch(monkeypatch, Path, name)

    def _watch(self, monkeypatch: pytest.MonkeyPatch, owner: object, name: str) -> None:
        real = getattr(owner, name)

        def watched(*args: object, **kwargs: object) -> object:
            self._count()
            return real(*args, **kwargs)

        monkeypatch.setattr(owner, name, watched)

    def _count(self) -> None:
        if self.left > 0:
            self.left -= 1
            if self.left == 0:
                raise Crash

    def fails_after(self, operations: int, during: Callable[[], object]) -> bool:
        """Fail after so many operations; False if there were not so many."""
        self.left = operations + 1
        try:
            during()
        except Crash:
            return True
        finally:
            self.left = 0
        return False


def fill(harness: LogHarness, log: UnifiedLog) -> None:
    """Write several segments with transactions of both kinds, of which less than half will stay."""
    for i in range(40):
        put(harness, log, (b"k%d" % (i % 5), b"%d" % i * 20), (b"once%d" % i, None if i % 3 else b"v"))
        if i % 4 == 0:
            put(harness, log, (b"t%d" % (i % 3), b"%d" % i), pid=7, seq=i // 4, transactional=True)
            end_transaction(harness, log, 7, commit=bool(i % 8))
    log.roll()
    log.flusher.flush()


def test_every_crash_is_finished_or_undone(
    harness: LogHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = harness.open(CONFIG, clean=True)
    fill(harness, log)
    table, end = last_values(log), log.log_end_offset
    read = {record.offset for record in committed(log)}
    log.close()
    saved = tmp_path / "saved"
    shutil.copytree(harness.directory, saved)
    power = Power(monkeypatch)
    outcomes = set()
    operations = 0
    crashed = True
    while crashed:
        shutil.rmtree(harness.directory)
        shutil.copytree(saved, harness.directory)
        log = harness.open(CONFIG, clean=True)
        crashed = power.fails_after(operations, lambda log=log: clean(harness, log))  # type: ignore[misc]
        recovery_point = log.flusher.recovery_point
        harness.crash(log)
        log = harness.open(CONFIG, recovery_point=recovery_point)
        assert (last_values(log), log.log_end_offset) == (table, end)
        found = {record.offset for record in committed(log)}
        assert found <= read
        outcomes.add(len(batches_of(log)))
        assert not [
            path for path in harness.directory.iterdir() if path.suffix in (".cleaned", ".swap", ".deleted")
        ]
        # And it can be cleaned again, to the same end.
        clean(harness, log)
        assert last_values(log) == table
        log.close()
        operations += 1
    assert operations > 50
    assert len(outcomes) > 2  # no group, some, all of them


def test_a_crash_while_a_swap_is_finished_is_finished_by_the_next_start(
    harness: LogHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = harness.open(CONFIG, clean=True)
    fill(harness, log)
    table = last_values(log)
    log.close()
    saved = tmp_path / "saved"
    shutil.copytree(harness.directory, saved)
    power = Power(monkeypatch)
    # Find out how far a round gets before its first old file gets another name.
    for swapping in range(1, 1000):
        shutil.rmtree(harness.directory)
        shutil.copytree(saved, harness.directory)
        log = harness.open(CONFIG, clean=True)
        assert power.fails_after(swapping, lambda log=log: clean(harness, log))  # type: ignore[misc]
        harness.crash(log)
        if list(harness.directory.glob("*.log.deleted")):
            break
    interrupted = tmp_path / "interrupted"
    shutil.copytree(harness.directory, interrupted)
    crashed, operations = True, 0
    while crashed:
        shutil.rmtree(harness.directory)
        shutil.copytree(interrupted, harness.directory)
        crashed = power.fails_after(operations, lambda: harness.open(CONFIG))
        for made in harness.logs:
            made.close_for_deletion()
        log = harness.open(CONFIG)
        assert last_values(log) == table
        harness.crash(log)
        operations += 1
    assert operations > 10


def test_a_segment_of_which_nothing_is_left_takes_the_old_transaction_index_away(harness: LogHarness) -> None:
    log = harness.open(CONFIG, clean=True)
    put(harness, log, (b"a", b"1"), pid=7, transactional=True)
    end_transaction(harness, log, 7, commit=False)
    log.roll()
    put(harness, log, (b"b", b"1"), pid=7, seq=1, transactional=True)
    end_transaction(harness, log, 7, commit=True)
    log.close()
    # As after a crash before the old files got other names.
    for kind in (".log", ".index", ".timeindex"):
        (harness.directory / f"{0:020d}{kind}.swap").write_bytes(b"")
    log = harness.open(CONFIG, recovery_point=log.log_end_offset)
    assert [record.value for record in committed(log)] == [b"1"]
    assert not (harness.directory / f"{0:020d}.txnindex").exists()
