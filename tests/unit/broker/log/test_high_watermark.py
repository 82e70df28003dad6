"""High watermark: how it moves, and up to where readers see a log that has several replicas."""

from __future__ import annotations

import pytest

from harness.broker.logs import TP, LogHarness
from kclient.broker.log.config import LogConfig
from kclient.broker.log.log_manager import LogManager
from kclient.broker.log.log_types import LogOffsetMetadata
from kclient.broker.log.unified_log import AppendOrigin, FetchIsolation, UnifiedLog
from kclient.errors import OffsetOutOfRangeError
from kclient.record import ControlRecordType, EndTransactionMarker, iter_batches

COMMITTED, REPLICATED, ALL = (
    FetchIsolation.TXN_COMMITTED,
    FetchIsolation.HIGH_WATERMARK,
    FetchIsolation.LOG_END,
)


def appended(harness: LogHarness, count: int) -> UnifiedLog:
    log = harness.open_replica(LogConfig(index_interval_bytes=0))
    for _ in range(count):
        log.append_as_leader(harness.batch([b"a", b"b"]), 0)
    return log


def bases(log: UnifiedLog, isolation: FetchIsolation, start: int = 0) -> list[int]:
    return [
        batch.base_offset for batch in iter_batches(log.read(start, 1 << 20, isolation=isolation).records)
    ]


def test_an_append_is_not_seen_before_the_high_watermark_has_passed_it(harness: LogHarness) -> None:
    log = appended(harness, 2)
    assert (log.high_watermark, log.log_end_offset) == (0, 4)
    assert (bases(log, REPLICATED), bases(log, ALL)) == ([], [0, 2])
    assert log.advance_high_watermark(LogOffsetMetadata(2))
    info = log.read(0, 1 << 20)
    assert (info.high_watermark, info.last_stable_offset) == (2, 2)
    assert bases(log, REPLICATED) == [0]
    assert log.advance_high_watermark(log.log_end)
    assert bases(log, REPLICATED) == bases(log, COMMITTED) == [0, 2]


def test_it_never_goes_back_nor_behind_the_end(harness: LogHarness) -> None:
    log = appended(harness, 2)
    assert log.advance_high_watermark(LogOffsetMetadata(99))
    assert log.high_watermark == 4
    for offset in (4, 3, 0, -1):
        assert not log.advance_high_watermark(LogOffsetMetadata(offset))
    assert log.high_watermark == 4


def test_reading_above_it_gives_nothing_and_above_the_end_is_out_of_range(harness: LogHarness) -> None:
    log = appended(harness, 2)
    log.advance_high_watermark(LogOffsetMetadata(2))
    for offset in (2, 3, 4):
        assert len(log.read(offset, 1000).records) == 0
    with pytest.raises(OffsetOutOfRangeError):
        log.read(5, 1000)


def test_records_are_deleted_up_to_it_only(harness: LogHarness) -> None:
    log = appended(harness, 2)
    log.advance_high_watermark(LogOffsetMetadata(2))
    with pytest.raises(OffsetOutOfRangeError):
        log.delete_records_before(3)
    assert log.delete_records_before(2) == 2


def test_a_truncation_takes_it_back_with_the_log(harness: LogHarness) -> None:
    log = appended(harness, 4)
    log.advance_high_watermark(LogOffsetMetadata(4))
    log.truncate_to(6)
    assert (log.high_watermark, log.log_end_offset) == (4, 6)
    log.truncate_to(2)
    assert (log.high_watermark, log.log_end_offset) == (2, 2)
    log.append_as_leader(harness.batch([b"new", b"other"]), 1)
    assert bases(log, REPLICATED) == [0]


def test_its_place_may_be_in_a_segment_before_the_active_one(harness: LogHarness) -> None:
    log = appended(harness, 2)
    end = log.log_end
    log.roll()
    log.append_as_leader(harness.batch(), 0)
    assert (end.offset, end.segment_base_offset) == (4, 0)
    assert end.position == len(log.read(0, 1 << 20, isolation=ALL).records)
    log.advance_high_watermark(end)
    assert bases(log, REPLICATED) == [0, 2]
    assert len(log.read(4, 1000).records) == 0


@pytest.mark.parametrize("abort", [True, False])
def test_a_transaction_is_stable_once_its_marker_is_below_it(harness: LogHarness, abort: bool) -> None:
    log = appended(harness, 1)
    log.append_as_leader(harness.batch([b"in"], pid=1, transactional=True), 0)
    kind = ControlRecordType.ABORT if abort else ControlRecordType.COMMIT
    marker = EndTransactionMarker(kind, 1).batch(0, harness.time.wall_ms(), 0, 1, 0)
    log.append_as_leader(marker, 0, origin=AppendOrigin.COORDINATOR)
    log.append_as_leader(harness.batch(), 0)
    stable = []
    for high_watermark in (1, 2, 3, 4, 5):
        log.advance_high_watermark(LogOffsetMetadata(high_watermark))
        stable.append(log.last_stable_offset)
    assert stable == [1, 2, 2, 4, 5]
    assert log.read(0, 1 << 20, isolation=COMMITTED).aborted == ([(1, 2)] if abort else [])


def test_the_stable_offset_does_not_lie_before_the_start(harness: LogHarness) -> None:
    log = appended(harness, 1)
    log.append_as_leader(harness.batch([b"in", b"too"], pid=1, transactional=True), 0)
    log.advance_high_watermark(log.log_end)
    log.delete_records_before(3)
    assert log.last_stable_offset == 3


def test_it_begins_anew_where_it_was_written_down_but_within_the_log(harness: LogHarness) -> None:
    log = appended(harness, 3)
    harness.crash(log)
    for written, found in ((4, 4), (99, 6), (0, 0)):
        log = harness.open_replica(high_watermark=written)
        assert log.high_watermark == found
        harness.crash(log)
    log = harness.open_replica(high_watermark=1, log_start_offset=2)
    assert log.high_watermark == 2


def test_it_is_written_down_every_few_seconds_and_at_the_end(harness: LogHarness) -> None:
    place = harness.root / "logs"
    checkpoint = place / "replication-offset-checkpoint"
    manager = LogManager([place], LogConfig(), harness.time, harness.scheduler)
    manager.startup()
    log = manager.get_or_create_log(TP)
    for _ in range(3):
        log.append_as_leader(harness.batch(), 0)
    log.advance_high_watermark(LogOffsetMetadata(1))
    harness.run_due(5000)
    assert checkpoint.read_text() == "0\n1\nt 0 1\n"
    written = checkpoint.stat().st_ino
    harness.run_due(5000)
    assert checkpoint.stat().st_ino == written, "the same again is not worth a write"
    log.advance_high_watermark(LogOffsetMetadata(2))
    manager.shutdown()
    assert checkpoint.read_text() == "0\n1\nt 0 2\n"
    again = LogManager([place], LogConfig(), harness.time, harness.scheduler)
    again.startup()
    found = again.get_log(TP)
    assert found is not None
    assert (found.high_watermark, found.log_end_offset) == (2, 3)
    again.shutdown()
