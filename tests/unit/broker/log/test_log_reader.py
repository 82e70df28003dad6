"""Reads and lookups across segments: alone, and as the log uses them."""

from __future__ import annotations

from typing import Any

import pytest

from harness.broker.logs import TP, LogHarness
from kclient.broker.log.config import LogConfig
from kclient.broker.log.local_log import LocalLog
from kclient.broker.log.log_guard import LogGuard
from kclient.broker.log.log_reader import LogReader
from kclient.broker.log.log_types import FetchIsolation, LogOffsetMetadata
from kclient.broker.log.producer_state import AppendOrigin
from kclient.broker.log.segment import LogSegment
from kclient.errors import InvalidRequestError
from kclient.record import ControlRecordType, EndTransactionMarker, MemoryRecordsBuilder, iter_batches
from kclient.record.open_files import OpenFiles


class ThreeSegments:
    """Offsets 0 to 8, three in a segment, each in a batch of its own."""

    def __init__(self, harness: LogHarness) -> None:
        self.local = LocalLog(
            TP, harness.directory, LogConfig(index_interval_bytes=0), harness.time, OpenFiles(8)
        )
        self.local.open_segment(0)
        self.guard = LogGuard(TP, harness.log_dir, self.local.files)
        self.reader = LogReader(self.local, self.guard)
        for offset in range(9):
            if offset in (3, 6):
                self.local.roll()
            data = bytearray(harness.batch([b"x"], timestamp_ms=1000 + offset))
            (batch,) = iter_batches(memoryview(data))
            batch.set_base_offset(offset)
            self.local.append(memoryview(data), [batch])
        self.batch_bytes = len(data)

    def read(self, offset: int, limit: int | LogOffsetMetadata, max_bytes: int = 1 << 20) -> list[int]:
        """The base offsets of what a read gives."""
        limit = LogOffsetMetadata(limit) if isinstance(limit, int) else limit
        with self.guard.lock:
            pinned = self.reader.pin(offset, limit.offset)
        if pinned is None:
            return []
        found = self.reader.read(
            pinned, offset, limit, max_bytes, log_end=9, min_one_batch=True, inline_bytes=None
        )
        return [] if found is None else [batch.base_offset for batch in iter_batches(found[0])]


def test_a_read_ends_with_its_segment_and_with_its_limit(harness: LogHarness) -> None:
    three = ThreeSegments(harness)
    assert three.read(0, 9) == [0, 1, 2]
    assert three.read(4, 9) == [4, 5]
    assert three.read(3, 5) == [3, 4]
    assert three.read(4, 4) == []
    assert three.read(6, 9, three.batch_bytes) == [6]
    assert three.read(9, 9) == []


def test_a_limit_whose_place_is_known_is_not_searched_for(
    harness: LogHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    three = ThreeSegments(harness)
    monkeypatch.setattr(LogSegment, "position_of", None)
    assert three.read(3, LogOffsetMetadata(5, 3, 2 * three.batch_bytes)) == [3, 4]
    # Compaction may have made the segment shorter since.
    assert three.read(3, LogOffsetMetadata(6, 3, 9 * three.batch_bytes)) == [3, 4, 5]


def test_a_pin_lasts_as_long_as_the_read(harness: LogHarness) -> None:
    three = ThreeSegments(harness)
    segment = three.local.segments.first
    with three.guard.lock:
        pinned = three.reader.pin(0, 9)
    assert pinned is not None
    assert (pinned.segment, pinned.size) == (segment, 3 * three.batch_bytes)
    assert segment._pins == 1
    end = LogOffsetMetadata(9)
    three.reader.read(pinned, 0, end, 100, log_end=9, min_one_batch=True, inline_bytes=None)
    assert segment._pins == 0


@pytest.mark.parametrize("marker_in_segment", [0, 1])
@pytest.mark.parametrize("reopened", [False, True])
def test_a_read_names_aborted_transactions_of_segments_that_retention_takes_meanwhile(
    harness: LogHarness, monkeypatch: pytest.MonkeyPatch, marker_in_segment: int, reopened: bool
) -> None:
    log = harness.open(LogConfig(retention_ms=1000))
    log.append_as_leader(harness.batch([b"a"], pid=1, transactional=True), 0)
    if marker_in_segment:
        log.roll()
    abort = EndTransactionMarker(ControlRecordType.ABORT, 0).batch(0, harness.time.wall_ms(), 0, 1, 0)
    log.append_as_leader(abort, 0, origin=AppendOrigin.COORDINATOR)
    log.roll()
    harness.time.advance(5000)
    log.append_as_leader(harness.batch([b"b"]), 0)
    if reopened:
        harness.crash(log)
        log = harness.open(LogConfig(retention_ms=1000), recovery_point=2)
    read = LogSegment.read

    def read_slowly(self: LogSegment, *args: Any, **kwargs: Any) -> Any:
        found = read(self, *args, **kwargs)
        assert log.delete_old_segments() == 1 + marker_in_segment
        harness.run_due(60_000)
        assert not self.path.exists()
        return found

    monkeypatch.setattr(LogSegment, "read", read_slowly)
    info = log.read(0, 1000, isolation=FetchIsolation.TXN_COMMITTED)
    assert [batch.base_offset for batch in iter_batches(info.records)][:1] == [0]
    assert info.aborted == [(1, 0)]


def test_a_time_is_looked_for_from_an_offset_on(harness: LogHarness) -> None:
    reader = ThreeSegments(harness).reader
    assert reader.offset_for_timestamp(1004, 0) == (1004, 4, None)
    assert reader.offset_for_timestamp(1001, 2) == (1002, 2, None)
    assert reader.offset_for_timestamp(-3, 0) == (1008, 8, None)
    assert reader.offset_for_timestamp(1009, 0) is None


def test_a_read_gives_at_most_max_bytes_but_the_first_batch_whole(harness: LogHarness) -> None:
    log = harness.open()
    sizes = [
        log.append_as_leader(harness.batch([b"x" * size]), 0).size_bytes for size in (10, 5000, 20_000, 30)
    ]
    assert len(log.read(0, sizes[0] + 7).records) == sizes[0] + 7
    assert len(log.read(0, 1).records) == sizes[0]
    assert len(log.read(2, 1).records) == sizes[2]
    assert len(log.read(2, 1, min_one_batch=False).records) == 1
    assert len(log.read(2, 0, min_one_batch=False).records) == 0
    assert len(log.read(0, 1 << 20).records) == sum(sizes)


def test_a_read_within_a_batch_begins_with_that_batch(harness: LogHarness) -> None:
    log = harness.open(LogConfig(index_interval_bytes=0))
    for _ in range(20):
        log.append_as_leader(harness.batch([b"a", b"b", b"c"]), 0)
    for offset in range(60):
        batch = next(iter(iter_batches(log.read(offset, 1).records)))
        assert batch.base_offset == offset // 3 * 3


def test_a_batch_far_behind_the_last_index_entry_is_found(harness: LogHarness) -> None:
    log = harness.open(LogConfig(index_interval_bytes=10_000_000))
    for _ in range(30):
        log.append_as_leader(harness.batch([b"x" * 3000]), 0)
    log.update_config(LogConfig())
    for offset in (0, 1, 15, 29):
        batch = next(iter(iter_batches(log.read(offset, 100).records)))
        assert batch.base_offset == offset


def test_a_read_passes_over_segments_that_hold_nothing_from_its_offset_on(harness: LogHarness) -> None:
    builder = MemoryRecordsBuilder(base_offset=0)
    builder.append(harness.time.wall_ms(), b"k", b"kept")
    (harness.directory / ("0" * 20 + ".log")).write_bytes(builder.close())
    builder = MemoryRecordsBuilder(base_offset=10)
    builder.append(harness.time.wall_ms(), b"k", b"later")
    (harness.directory / (f"{10:020d}" + ".log")).write_bytes(builder.close())
    log = harness.open()
    (batch,) = iter_batches(log.read(5, 1000).records)
    assert batch.base_offset == 10


def test_times_are_looked_up_across_segments(harness: LogHarness) -> None:
    log = harness.open(LogConfig(index_interval_bytes=0))
    for start in (1000, 2000, 3000):
        for step in range(0, 100, 10):
            log.append_as_leader(
                harness.batch([b"a", b"b"], timestamps_ms=[start + step, start + step + 5]), 1
            )
        log.roll()
    assert log.offset_for_timestamp(0) == (1000, 0, 1)
    assert log.offset_for_timestamp(1005) == (1005, 1, 1)
    assert log.offset_for_timestamp(1006) == (1010, 2, 1)
    assert log.offset_for_timestamp(1096) == (2000, 20, 1)
    assert log.offset_for_timestamp(3095) == (3095, 59, 1)
    assert log.offset_for_timestamp(3096) is None
    assert log.offset_for_timestamp(-1) == (-1, 60, 1)
    assert log.offset_for_timestamp(-2) == log.offset_for_timestamp(-4) == (-1, 0, 1)
    assert log.offset_for_timestamp(-3) == (3095, 59, 1)
    assert log.offset_for_timestamp(-5) is None
    with pytest.raises(InvalidRequestError):
        log.offset_for_timestamp(-6)
    log.delete_records_before(4)
    assert log.offset_for_timestamp(0) == (1020, 4, 1)


def test_a_time_is_found_though_the_records_are_not_in_order_of_time(harness: LogHarness) -> None:
    log = harness.open()
    log.append_as_leader(harness.batch([b"a", b"b", b"c"], timestamps_ms=[300, 900, 100]), 0)
    log.append_as_leader(harness.batch([b"d"], timestamps_ms=[200]), 0)
    assert log.offset_for_timestamp(301) == (900, 1, 0)
    assert log.offset_for_timestamp(-3) == (900, 1, 0)
    assert log.offset_for_timestamp(150) == (300, 0, 0)


def test_an_empty_log_has_no_greatest_timestamp(harness: LogHarness) -> None:
    log = harness.open()
    assert log.offset_for_timestamp(-3) is None
    assert log.offset_for_timestamp(0) is None
    assert log.offset_for_timestamp(-1) == (-1, 0, None)
