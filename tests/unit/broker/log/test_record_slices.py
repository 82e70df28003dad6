"""Batches that are read when they are sent, and what becomes of their segment meanwhile."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.broker.logs import LogHarness
from kclient.broker.log.config import LogConfig
from kclient.broker.log.record_slice import RecordSlice
from kclient.broker.log.unified_log import UnifiedLog


def descriptors_below(directory: Path) -> int:
    count = 0
    for fd in os.listdir("/proc/self/fd"):
        try:
            count += os.readlink(f"/proc/self/fd/{fd}").startswith(str(directory))
        except FileNotFoundError:
            pass  # that of the listing
    return count


def filled(harness: LogHarness, **config: object) -> UnifiedLog:
    log = harness.open(LogConfig(segment_bytes=10_000, file_delete_delay_ms=0, **config))
    for number in range(40):
        log.append_as_leader(harness.batch([bytes([number]) * 900]), 0)
    assert len(log.segment_base_offsets) > 2
    return log


def sliced(log: UnifiedLog, offset: int = 0, max_bytes: int = 1 << 20) -> RecordSlice:
    records = log.read(offset, max_bytes, inline_bytes=500).records
    assert isinstance(records, RecordSlice)
    return records


@pytest.mark.parametrize("interval", [0, 1000, 4096, 100_000])
def test_a_slice_holds_what_a_read_gives(harness: LogHarness, interval: int) -> None:
    log = filled(harness, index_interval_bytes=interval)
    for offset in range(40):
        for max_bytes in (0, 500, 999, 1001, 2500, 1 << 20):
            for one in (True, False):
                read = log.read(offset, max_bytes, min_one_batch=one)
                later = log.read(offset, max_bytes, min_one_batch=one, inline_bytes=700)
                assert later.content() == read.records
                assert isinstance(later.records, RecordSlice) == (len(read.records) > 700)


def test_without_records_being_read_they_cost_no_descriptor(harness: LogHarness) -> None:
    log = filled(harness)
    slices = [sliced(log, offset) for offset in range(39)]
    before = descriptors_below(harness.root)
    log.close()
    assert before > 0
    assert descriptors_below(harness.root) == 0
    assert slices[0].read()[:8] == bytes(8), "they can be read still"


def expire(harness: LogHarness, log: UnifiedLog) -> None:
    log.update_config(LogConfig(retention_ms=0, file_delete_delay_ms=0))
    harness.time.advance(1000)
    assert log.delete_old_segments() > 2
    harness.run_due()
    assert not list(harness.directory.glob("*.deleted"))


def remove(harness: LogHarness, log: UnifiedLog) -> None:
    log.close_for_deletion()
    harness.directory.rename(harness.root / "t-0.gone-delete")
    for path in (harness.root / "t-0.gone-delete").iterdir():
        path.unlink()


@pytest.mark.parametrize("end", [expire, remove])
def test_a_slice_can_be_read_when_its_segment_was_deleted(
    harness: LogHarness, end: Callable[[LogHarness, UnifiedLog], None]
) -> None:
    log = filled(harness)
    kept, expected = sliced(log), bytes(log.read(0, 1 << 20).records)
    end(harness, log)
    assert kept.read() == expected
    # And then the disk space comes back.
    log.close_for_deletion()
    harness.run_due()
    harness.logs.clear()
    del kept, log
    gc.collect()
    assert descriptors_below(harness.root) == 0
