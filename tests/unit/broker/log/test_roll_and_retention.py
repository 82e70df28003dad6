"""Segments: when a new one begins, and when old ones go."""

from __future__ import annotations

from harness.broker.logs import LogHarness, read_all
from kclient.broker.log.config import LogConfig
from kclient.broker.log.producer_snapshot import read_snapshot
from kclient.record import MemoryRecordsBuilder, iter_batches


def names(harness: LogHarness, suffix: str) -> list[str]:
    return sorted(path.name for path in harness.directory.iterdir() if path.name.endswith(suffix))


def test_a_segment_that_would_grow_beyond_segment_bytes_is_rolled(harness: LogHarness) -> None:
    size = len(harness.batch([b"x" * 100]))
    log = harness.open(LogConfig(segment_bytes=3 * size))
    for _ in range(7):
        log.append_as_leader(harness.batch([b"x" * 100]), 0)
    assert log.segment_base_offsets == [0, 3, 6]
    assert [(harness.directory / name).stat().st_size for name in names(harness, ".log")] == [
        3 * size,
        3 * size,
        size,
    ]


def test_a_segment_is_rolled_by_the_time_of_its_records(harness: LogHarness) -> None:
    log = harness.open(LogConfig(segment_ms=1000))
    log.append_as_leader(harness.batch(timestamp_ms=10_000), 0)
    harness.time.advance(5000)  # the clock does not matter as long as records have timestamps
    log.append_as_leader(harness.batch(timestamp_ms=11_000), 0)
    assert log.segment_base_offsets == [0]
    log.append_as_leader(harness.batch(timestamp_ms=11_001), 0)
    assert log.segment_base_offsets == [0, 2]


def test_the_age_of_a_segment_is_known_after_a_restart(harness: LogHarness) -> None:
    log = harness.open(LogConfig(segment_ms=1000))
    log.append_as_leader(harness.batch(timestamp_ms=10_000), 0)
    log.close()
    log = harness.open(LogConfig(segment_ms=1000), clean=True)
    log.append_as_leader(harness.batch(timestamp_ms=11_001), 0)
    assert log.segment_base_offsets == [0, 1]


def test_a_segment_of_records_without_timestamps_is_rolled_by_the_clock(harness: LogHarness) -> None:
    log = harness.open(LogConfig(segment_ms=1000))
    log.append_as_leader(harness.batch(timestamp_ms=-1), 0)
    harness.time.advance(1001)
    log.append_as_leader(harness.batch(timestamp_ms=-1), 0)
    assert log.segment_base_offsets == [0, 1]


def test_an_empty_segment_is_not_rolled_for_its_age(harness: LogHarness) -> None:
    log = harness.open(LogConfig(segment_ms=1000))
    harness.time.advance(5000)
    log.append_as_leader(harness.batch(), 0)
    assert log.segment_base_offsets == [0]


def test_a_segment_is_rolled_when_its_offset_index_is_full_though_times_need_no_entries(
    harness: LogHarness,
) -> None:
    log = harness.open(LogConfig(index_interval_bytes=0, segment_index_bytes=36))
    for _ in range(7):
        # Of equal times the time index has one.
        log.append_as_leader(harness.batch([b"v"], timestamp_ms=1000), 0)
    assert log.segment_base_offsets == [0, 5]


def test_a_full_index_rolls_its_segment(harness: LogHarness) -> None:
    log = harness.open(LogConfig(index_interval_bytes=0, segment_index_bytes=36))
    for _ in range(8):
        harness.time.advance(1)
        log.append_as_leader(harness.batch(), 0)
    # Three time entries fit, the last of which is kept for the entry of the roll; a segment's first batch has
    # none.
    assert log.segment_base_offsets == [0, 3, 6]
    log.flusher.flush()
    assert all(path.stat().st_size <= 36 for path in harness.directory.glob("*index"))


def test_offsets_that_do_not_fit_the_segment_roll_it(harness: LogHarness) -> None:
    builder = MemoryRecordsBuilder(base_offset=0)
    builder.append(harness.time.wall_ms(), None, b"first")
    far = MemoryRecordsBuilder(base_offset=2**31 - 2)
    far.append(harness.time.wall_ms(), None, b"far")
    (harness.directory / f"{0:020d}.log").write_bytes(builder.close() + far.close())
    log = harness.open()
    assert log.log_end_offset == 2**31 - 1
    log.append_as_leader(harness.batch([b"a"]), 0)
    assert log.segment_base_offsets == [0]
    log.append_as_leader(harness.batch([b"b"]), 0)
    assert log.segment_base_offsets == [0, 2**31]
    assert [record.value for record in read_all(log)] == [b"first", b"far", b"a", b"b"]


def test_rolling_an_empty_active_segment_makes_no_second_one(harness: LogHarness) -> None:
    log = harness.open()
    assert log.roll() == 0
    log.append_as_leader(harness.batch(), 0)
    assert log.roll() == 1
    assert log.roll() == 1
    assert log.segment_base_offsets == [0, 1]


def test_rolling_snapshots_the_producers_and_flushes_in_the_background(harness: LogHarness) -> None:
    log = harness.open()
    log.append_as_leader(harness.batch([b"a", b"b"], pid=9, seq=4), 0)
    log.roll()
    (entry,) = read_snapshot(harness.directory / f"{2:020d}.snapshot")
    assert (entry.producer_id, entry.last_sequence, entry.last_offset) == (9, 5, 1)
    assert log.flusher.recovery_point == 0
    harness.run_due()
    assert log.flusher.recovery_point == 2


def test_segments_older_than_retention_ms_go_and_their_files_later(harness: LogHarness) -> None:
    log = harness.open(LogConfig(retention_ms=1000, file_delete_delay_ms=100))
    for _ in range(3):
        log.append_as_leader(harness.batch([b"a"], pid=1, seq=log.log_end_offset), 0)
        log.roll()
        harness.time.advance(600)
    assert log.delete_old_segments() == 2
    assert (log.log_start_offset, log.segment_base_offsets) == (2, [2, 3])
    assert names(harness, ".log.deleted") == [f"{0:020d}.log.deleted", f"{1:020d}.log.deleted"]
    harness.run_due(99)
    assert len(names(harness, ".log.deleted")) == 2
    harness.run_due(1)
    assert names(harness, ".deleted") == []
    assert names(harness, ".snapshot") == [f"{2:020d}.snapshot", f"{3:020d}.snapshot"]
    assert log.delete_old_segments() == 0


def test_a_reader_in_a_deleted_segment_can_finish(harness: LogHarness) -> None:
    log = harness.open(LogConfig(retention_ms=0, file_delete_delay_ms=0))
    log.append_as_leader(harness.batch([b"a"]), 0)
    segment = log._local.segments.active
    with log._lock:
        segment.pin()
    harness.time.advance(1)
    assert log.delete_old_segments() == 1
    harness.run_due()
    assert not segment.path.exists()
    assert segment.records.read(0, 10) != b""
    with log._lock:
        segment.unpin()


def test_if_all_segments_are_too_old_a_new_one_takes_their_place(harness: LogHarness) -> None:
    log = harness.open(LogConfig(retention_ms=1000))
    log.append_as_leader(harness.batch(), 0)
    harness.time.advance(1001)
    assert log.delete_old_segments() == 1
    assert (log.log_start_offset, log.log_end_offset, log.segment_base_offsets) == (1, 1, [1])
    harness.time.advance(10_000)
    assert log.delete_old_segments() == 0


def test_the_oldest_segments_go_as_long_as_retention_bytes_remain(harness: LogHarness) -> None:
    size = len(harness.batch())
    log = harness.open(LogConfig(retention_bytes=2 * size))
    for _ in range(5):
        log.append_as_leader(harness.batch(), 0)
        log.roll()
    log.append_as_leader(harness.batch(), 0)
    assert log.delete_old_segments() == 4
    assert log.size == 2 * size
    log.update_config(LogConfig(retention_bytes=2 * size - 1))
    assert log.delete_old_segments() == 0


def test_segments_below_the_logs_start_go_even_from_a_compacted_log(harness: LogHarness) -> None:
    log = harness.open(LogConfig(cleanup_policy=("compact",), retention_ms=0, retention_bytes=0))
    for _ in range(3):
        log.append_as_leader(harness.batch(keys=[b"k"]), 0)
        log.roll()
    harness.time.advance(1000)
    assert log.delete_old_segments() == 0
    log.delete_records_before(2)
    assert log.delete_old_segments() == 2
    assert log.segment_base_offsets == [2, 3]


def test_negative_limits_keep_everything(harness: LogHarness) -> None:
    log = harness.open(LogConfig(retention_ms=-1, retention_bytes=-1))
    log.append_as_leader(harness.batch(timestamp_ms=0), 0)
    log.roll()
    assert log.delete_old_segments() == 0


def test_a_reader_that_comes_late_to_a_deleted_segment_finds_its_indexes(harness: LogHarness) -> None:
    config = LogConfig(retention_bytes=0, file_delete_delay_ms=0, index_interval_bytes=0)
    log = harness.open(config)
    for _ in range(5):
        log.append_as_leader(harness.batch([b"a"]), 0)
    log.close()
    log = harness.open(config, clean=True)
    segment = log._local.segments.active
    with log._lock:
        segment.pin()
    assert log.delete_old_segments() == 1
    harness.run_due()
    assert not list(harness.directory.glob("*.deleted"))
    found = segment.read(3, 100, segment.size, min_one_batch=True)
    assert found is not None
    assert next(iter(iter_batches(found[1]))).base_offset == 3
    with log._lock:
        segment.unpin()
    assert log.log_dir.offline_error is None
