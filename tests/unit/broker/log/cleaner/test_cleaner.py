"""A round of cleaning keeps the last record of each key, and what readers and producers still need."""

from __future__ import annotations

import os

import pytest

from harness.broker.cleaning import batches_of, clean, committed, end_transaction, pairs_of, put
from harness.broker.logs import LogHarness, read_all
from kclient.broker.log.cleaner.cleaner_manager import CleaningAbortedError
from kclient.broker.log.config import LogConfig
from kclient.broker.log.log_types import FetchIsolation
from kclient.broker.log.record_slice import RecordSlice
from kclient.broker.log.unified_log import UnifiedLog
from kclient.common.topic_partition import TopicPartition
from kclient.compress import CompressionType
from kclient.errors import CorruptRecordError, InvalidRecordError
from kclient.record import iter_batches, legacy
from kclient.record.open_files import OpenFiles
from kclient.record.record import TimestampType

RETENTION_MS = 1000


@pytest.fixture
def log(harness: LogHarness) -> UnifiedLog:
    return harness.open(compacted(), clean=True)


def compacted(**settings: object) -> LogConfig:
    return LogConfig(cleanup_policy=("compact",), delete_retention_ms=RETENTION_MS, **settings)


def offsets(log: UnifiedLog) -> list[int]:
    return [offset for offset, _, _ in pairs_of(log)]


class TestRecords:
    def test_the_last_of_each_key_stays_with_its_offset(self, harness: LogHarness, log: UnifiedLog) -> None:
        put(harness, log, (b"a", b"1"), (b"b", b"1"))
        put(harness, log, (b"a", b"2"), (b"a", b"3"))
        log.roll()
        put(harness, log, (b"a", b"4"))
        assert clean(harness, log)[0] == 4
        assert pairs_of(log) == [(1, b"b", b"1"), (3, b"a", b"3"), (4, b"a", b"4")]

    def test_what_was_cleaned_before_gives_way_to_what_is_new(
        self, harness: LogHarness, log: UnifiedLog
    ) -> None:
        put(harness, log, (b"a", b"1"), (b"b", b"1"))
        log.roll()
        cleaned_to, _ = clean(harness, log)
        put(harness, log, (b"a", b"2"))
        log.roll()
        assert clean(harness, log, cleaned_to)[0] == 3
        assert offsets(log) == [1, 2]

    def test_the_active_segment_is_left_alone(self, harness: LogHarness, log: UnifiedLog) -> None:
        put(harness, log, (b"a", b"1"))
        put(harness, log, (b"a", b"2"))
        assert clean(harness, log)[0] == 0
        assert offsets(log) == [0, 1]

    def test_what_is_not_stable_is_left_alone(self, harness: LogHarness, log: UnifiedLog) -> None:
        put(harness, log, (b"a", b"1"))
        log.roll()
        put(harness, log, (b"a", b"2"), pid=1, transactional=True)
        log.roll()
        put(harness, log, (b"a", b"3"))
        log.roll()
        assert clean(harness, log)[0] == 1
        assert offsets(log) == [0, 1, 2]

    def test_records_without_a_key_go(self, harness: LogHarness) -> None:
        log = harness.open(LogConfig(), clean=True)
        put(harness, log, (None, b"1"), (b"a", b"1"))
        log.update_config(compacted())
        log.roll()
        _, stats = clean(harness, log)
        assert (offsets(log), stats.keyless_records) == ([1], 1)

    @pytest.mark.parametrize("codec", list(CompressionType))
    @pytest.mark.parametrize("by_broker", [False, True])
    def test_what_stays_of_a_batch_is_as_it_was(
        self, harness: LogHarness, codec: CompressionType, by_broker: bool
    ) -> None:
        kind = "LogAppendTime" if by_broker else "CreateTime"
        log = harness.open(compacted(message_timestamp_type=kind, compression_type="producer"), clean=True)
        put(harness, log, (b"x", b"x"))
        batch = harness.batch(
            [b"1", b"2", b"3" * 20_000, b"4"], keys=[b"a", b"b", b"c", b"a"], compression=codec,
            timestamps_ms=[9, 7, 8, 5], pid=5, epoch=3, seq=70,
        )  # fmt: skip
        log.append_as_leader(batch, 6)
        before = batches_of(log)[1]
        records = list(before.records())
        log.roll()
        clean(harness, log)
        after = batches_of(log)[1]
        for fact in (
            "base_offset", "last_offset", "partition_leader_epoch", "producer_id", "producer_epoch", "base_sequence",
            "last_sequence", "compression_type", "timestamp_type", "is_transactional", "delete_horizon_ms",
        ):  # fmt: skip
            assert getattr(after, fact) == getattr(before, fact), fact
        assert list(after.records()) == records[1:]
        assert after.max_timestamp_ms == (before.max_timestamp_ms if by_broker else 8)
        assert after.timestamp_type is (
            TimestampType.LOG_APPEND_TIME if by_broker else TimestampType.CREATE_TIME
        )

    def test_a_batch_of_which_all_stays_is_the_same_bytes(self, harness: LogHarness, log: UnifiedLog) -> None:
        put(harness, log, (b"a", b"1"), (b"b", b"2"), compression=CompressionType.GZIP)
        before = bytes(batches_of(log)[0].view)
        log.roll()
        clean(harness, log)
        assert bytes(batches_of(log)[0].view) == before

    def test_times_are_found_in_what_is_left(self, harness: LogHarness) -> None:
        log = harness.open(compacted(index_interval_bytes=0), clean=True)
        for i in range(50):
            put(harness, log, (b"k%d" % (i % 7), b"v"), timestamp_ms=1000 + i)
        log.roll()
        clean(harness, log)
        assert offsets(log) == list(range(43, 50))
        for i in range(50):
            expected = max(i, 43)
            assert log.offset_for_timestamp(1000 + i) == (1000 + expected, expected, 0)
        assert log.offset_for_timestamp(-3) == (1049, 49, 0)

    def test_a_log_that_starts_in_mid_segment_goes_on_to(self, harness: LogHarness, log: UnifiedLog) -> None:
        for value in (b"1", b"2", b"3"):
            put(harness, log, (b"a", value))
            put(harness, log, (value, value))
        log.delete_records_before(2)
        log.roll()
        clean(harness, log)
        assert (log.log_start_offset, offsets(log)) == (2, [1, 3, 4, 5])
        assert [record.offset for record in read_all(log)] == [3, 4, 5]

    def test_the_leader_epochs_are_those_of_before(self, harness: LogHarness, log: UnifiedLog) -> None:
        for epoch in range(4):
            log.append_as_leader(harness.batch([b"v"], keys=[b"a"]), epoch)
        log.roll()
        ends = [log.end_offset_for_epoch(epoch) for epoch in range(4)]
        clean(harness, log)
        assert [log.end_offset_for_epoch(epoch) for epoch in range(4)] == ends
        assert [batch.partition_leader_epoch for batch in batches_of(log)] == [3]


class TestTombstones:
    def test_one_goes_when_the_time_to_see_it_is_over(self, harness: LogHarness, log: UnifiedLog) -> None:
        put(harness, log, (b"a", b"1"))
        put(harness, log, (b"b", b"1"), (b"a", None), (b"c", b"1"))
        log.roll()
        clean(harness, log)
        assert offsets(log) == [1, 2, 3]
        horizon_ms = harness.time.wall_ms() + RETENTION_MS
        assert batches_of(log)[0].delete_horizon_ms == horizon_ms
        harness.run_due(RETENTION_MS - 1)
        clean(harness, log)
        assert (offsets(log), batches_of(log)[0].delete_horizon_ms) == ([1, 2, 3], horizon_ms)
        harness.run_due(1)
        clean(harness, log)
        assert (offsets(log), batches_of(log)[0].delete_horizon_ms) == ([1, 3], horizon_ms)

    @pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.ZSTD])
    def test_a_horizon_changes_nothing_about_the_records(
        self, harness: LogHarness, log: UnifiedLog, codec: CompressionType
    ) -> None:
        put(harness, log, (b"a", b"1"), (b"b", None), compression=codec, pid=4, seq=9, timestamp_ms=77)
        (before,) = (read_all(log),)
        log.roll()
        clean(harness, log)
        assert [(r.offset, r.timestamp_ms, r.key, r.value, r.sequence) for r in read_all(log)] == [
            (r.offset, r.timestamp_ms, r.key, r.value, r.sequence) for r in before
        ]
        assert batches_of(log)[0].max_timestamp_ms == 77

    def test_one_behind_what_was_looked_at_stays(self, harness: LogHarness, log: UnifiedLog) -> None:
        put(harness, log, (b"a", None), (b"b", b"1"))
        put(harness, log, (b"c", b"1"), (b"d", None))
        log.roll()
        clean(harness, log)
        harness.run_due(RETENTION_MS)
        assert clean(harness, log, keys=2)[0] == 2
        assert offsets(log) == [1, 2, 3]


class TestTransactions:
    def test_aborted_data_goes_at_once_and_supersedes_nothing(
        self, harness: LogHarness, log: UnifiedLog
    ) -> None:
        put(harness, log, (b"a", b"1"))
        put(harness, log, (b"a", b"2"), (b"b", b"2"), pid=1, transactional=True)
        end_transaction(harness, log, 1, commit=False, epoch=1)
        log.roll()
        clean(harness, log)
        assert offsets(log) == [0]
        assert [record.offset for record in committed(log)] == [0]

    def test_aborted_data_whose_marker_is_in_a_later_segment_goes_too(
        self, harness: LogHarness, log: UnifiedLog
    ) -> None:
        put(harness, log, (b"a", b"2"), pid=1, transactional=True)
        log.roll()
        put(harness, log, (b"c", b"2"))
        end_transaction(harness, log, 1, commit=False, epoch=1)
        log.roll()
        clean(harness, log)
        assert offsets(log) == [1]

    @pytest.mark.parametrize("commit", [False, True])
    def test_a_marker_stays_as_long_as_data_and_then_until_its_horizon(
        self, harness: LogHarness, log: UnifiedLog, commit: bool
    ) -> None:
        put(harness, log, (b"a", b"1"), pid=1, transactional=True)
        end_transaction(harness, log, 1, commit=commit, epoch=1)
        # The producer goes on, so that neither of the two is its last.
        put(harness, log, (b"a", b"2"), pid=1, epoch=1)
        log.roll()

        def markers() -> list[tuple[int, int | None]]:
            return [(one.base_offset, one.delete_horizon_ms) for one in batches_of(log) if one.is_control]

        clean(harness, log)  # its data was still there
        assert (offsets(log), markers()) == ([2], [(1, None)])
        harness.run_due(5 * RETENTION_MS)
        clean(harness, log)
        horizon_ms = harness.time.wall_ms() + RETENTION_MS
        assert markers() == [(1, horizon_ms)]
        harness.run_due(RETENTION_MS - 1)
        clean(harness, log)
        assert markers() == [(1, horizon_ms)]
        harness.run_due(1)
        clean(harness, log)
        assert (offsets(log), markers()) == ([2], [])

    def test_the_index_has_the_aborted_transactions_whose_markers_stay_for_data(
        self, harness: LogHarness
    ) -> None:
        log = harness.open(compacted(), clean=True)
        put(harness, log, (b"a", b"1"), pid=1, transactional=True)
        end_transaction(harness, log, 1, commit=False, epoch=1)
        put(harness, log, (b"a", b"2"), pid=1, epoch=1)
        log.roll()

        def aborted() -> list[tuple[int, int]] | None:
            return log.read(0, 1 << 20, isolation=FetchIsolation.TXN_COMMITTED).aborted

        clean(harness, log)
        assert aborted() == [(1, 0)]
        clean(harness, log)
        # Else a later transaction of the producer would be taken for aborted: no marker would end this one.
        assert aborted() == []

    def test_a_later_transaction_of_the_producer_is_not_taken_for_aborted(
        self, harness: LogHarness, log: UnifiedLog
    ) -> None:
        put(harness, log, (b"a", b"1"), pid=1, transactional=True)
        end_transaction(harness, log, 1, commit=False)
        put(harness, log, (b"b", b"2"), pid=1, seq=1, transactional=True)
        end_transaction(harness, log, 1, commit=True)
        log.roll()
        for _ in range(4):
            clean(harness, log)
            assert [record.value for record in committed(log)] == [b"2"]
            harness.run_due(RETENTION_MS)


class TestWhatIsKeptEmpty:
    def test_the_last_batch_of_a_producer_that_may_write_again(
        self, harness: LogHarness, log: UnifiedLog
    ) -> None:
        put(harness, log, (b"a", b"1"), (b"b", b"1"), pid=3, epoch=2, seq=40, timestamp_ms=5)
        put(harness, log, (b"a", b"2"), (b"b", b"2"))
        log.roll()
        clean(harness, log)
        first, second = batches_of(log)
        assert (first.count, first.base_offset, first.last_offset) == (0, 0, 1)
        assert (first.producer_id, first.producer_epoch, first.last_sequence) == (3, 2, 41)
        assert (first.max_timestamp_ms, second.count) == (5, 2)

    def test_after_a_crash_its_retry_is_still_a_duplicate(self, harness: LogHarness, log: UnifiedLog) -> None:
        sent = harness.batch([b"1"], keys=[b"a"], pid=3, seq=40)
        log.append_as_leader(sent, 0)
        put(harness, log, (b"a", b"2"))
        log.roll()
        clean(harness, log)
        log.flusher.flush()
        harness.crash(log)
        for snapshot in harness.directory.glob("*.snapshot"):
            snapshot.unlink()
        log = harness.open(compacted())
        info = log.append_as_leader(sent, 0)
        assert (info.is_duplicate, info.first_offset) == (True, 0)

    def test_not_that_of_a_producer_that_has_expired(self, harness: LogHarness, log: UnifiedLog) -> None:
        put(harness, log, (b"a", b"1"), pid=3)
        put(harness, log, (b"a", b"2"))
        log.roll()
        harness.run_due(24 * 3600 * 1000)
        log.remove_expired_producers()
        clean(harness, log)
        assert [batch.base_offset for batch in batches_of(log)] == [1]

    def test_the_last_batch_of_what_can_be_cleaned(self, harness: LogHarness, log: UnifiedLog) -> None:
        put(harness, log, (b"a", b"1"))
        put(harness, log, (b"b", None))
        log.roll()
        for _ in range(3):
            clean(harness, log)
            harness.run_due(RETENTION_MS)
        assert [(batch.base_offset, batch.count) for batch in batches_of(log)] == [(0, 1), (1, 0)]

    def test_the_marker_by_which_a_producer_is_fenced(self, harness: LogHarness, log: UnifiedLog) -> None:
        put(harness, log, (b"a", b"1"), pid=1, transactional=True)
        end_transaction(harness, log, 1, commit=True, epoch=7)
        put(harness, log, (b"a", b"2"))
        log.roll()
        for _ in range(4):
            clean(harness, log)
            harness.run_due(RETENTION_MS)
        assert [(one.producer_epoch, one.base_offset) for one in batches_of(log) if one.is_control] == [
            (7, 1)
        ]


class TestRounds:
    def test_a_full_map_ends_the_round_and_the_next_one_goes_on(
        self, harness: LogHarness, log: UnifiedLog
    ) -> None:
        put(harness, log, (b"a", b"1"), (b"b", b"1"), (b"c", b"1"))
        put(harness, log, (b"a", b"2"), (b"b", b"2"), (b"c", b"2"))
        log.roll()
        cleaned_to, stats = clean(harness, log, keys=2)
        assert (cleaned_to, stats.map_utilization, offsets(log)) == (2, 1.0, [0, 1, 2, 3, 4, 5])
        cleaned_to, _ = clean(harness, log, cleaned_to, keys=2)
        assert (cleaned_to, offsets(log)) == (4, [1, 2, 3, 4, 5])
        cleaned_to, _ = clean(harness, log, cleaned_to, keys=2)
        assert (cleaned_to, offsets(log)) == (6, [3, 4, 5])

    def test_small_segments_become_one(self, harness: LogHarness, log: UnifiedLog) -> None:
        for i in range(6):
            put(harness, log, (b"a" if i % 2 else b"k%d" % i, b"v"), pid=1, seq=i)
            log.roll()
        clean(harness, log)
        assert log.segment_base_offsets == [0, 6]
        assert offsets(log) == [0, 2, 4, 5]
        harness.run_due(60_000)
        names = {path.name for path in harness.directory.iterdir()}
        kept = {f"{base:020d}{kind}" for base in (0, 6) for kind in (".log", ".index", ".timeindex")}
        assert names - kept == {"00000000000000000006.snapshot", "leader-epoch-checkpoint"}

    def test_the_state_of_producers_is_kept_where_segments_begin(self, harness: LogHarness) -> None:
        log = harness.open(compacted(segment_bytes=170), clean=True)
        for i in range(6):
            put(harness, log, (b"k%d" % i, b"v"), pid=1, seq=i)
        log.roll()
        clean(harness, log)
        harness.run_due(60_000)
        snapshots = sorted(int(path.stem) for path in harness.directory.glob("*.snapshot"))
        assert snapshots == log.segment_base_offsets[1:] == [2, 4, 6]

    def test_cleaned_segments_hold_no_descriptors(self, harness: LogHarness) -> None:
        log = harness.open(
            compacted(segment_bytes=300, index_interval_bytes=0), clean=True, files=OpenFiles(4)
        )
        for i in range(120):
            put(harness, log, (b"k%d" % i, b"v"))
        log.roll()
        before = len(os.listdir("/proc/self/fd"))
        clean(harness, log)
        harness.run_due(60_000)
        assert len(log.segment_base_offsets) > 20
        assert len(os.listdir("/proc/self/fd")) <= before + 4

    def test_a_segment_of_which_nothing_is_left_is_empty_and_then_gone(self, harness: LogHarness) -> None:
        log = harness.open(compacted(segment_bytes=150), clean=True)
        for i in range(3):
            put(harness, log, (b"a", b"%d" % i * 60))
        log.roll()
        clean(harness, log)
        assert (log.segment_base_offsets, offsets(log)) == ([0, 1, 2, 3], [2])
        assert [record.offset for record in read_all(log)] == [2]
        clean(harness, log)
        assert (log.segment_base_offsets, offsets(log)) == ([0, 3], [2])

    def test_a_reader_of_the_old_segments_reads_on(self, harness: LogHarness, log: UnifiedLog) -> None:
        for i in range(3):
            put(harness, log, (b"a", b"%d" % i))
        log.roll()
        found = log.read(0, 1 << 20, inline_bytes=0).records
        assert isinstance(found, RecordSlice)
        clean(harness, log)
        harness.run_due(60_000)  # the old files are removed
        values = [record.value for batch in iter_batches(found.read()) for record in batch.records()]
        assert values == [b"0", b"1", b"2"]
        assert [record.value for record in read_all(log)] == [b"2"]

    def test_a_round_that_is_aborted_leaves_nothing_behind(
        self, harness: LogHarness, log: UnifiedLog
    ) -> None:
        for i in range(3):
            put(harness, log, (b"a", b"%d" % i))
        log.roll()
        files = sorted(path.name for path in harness.directory.iterdir())
        looks = iter(())

        def abort(_tp: TopicPartition) -> None:
            if next(looks, None) is None:
                raise CleaningAbortedError

        for count in range(7):
            looks = iter(range(count))
            with pytest.raises(CleaningAbortedError):
                clean(harness, log, check=abort)
            assert sorted(path.name for path in harness.directory.iterdir()) == files
        assert offsets(log) == [0, 1, 2]

    def test_damage_ends_the_round_and_is_not_hidden_by_a_new_checksum(
        self, harness: LogHarness, log: UnifiedLog
    ) -> None:
        put(harness, log, (b"a", b"1"), (b"b", b"1"))
        put(harness, log, (b"a", b"2"))
        log.roll()
        path = harness.directory / f"{0:020d}.log"
        damaged = bytearray(path.read_bytes())
        damaged[70] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(CorruptRecordError):
            clean(harness, log)
        assert path.read_bytes() == damaged

    def test_batches_of_old_formats_are_not_touched(self, harness: LogHarness, log: UnifiedLog) -> None:
        put(harness, log, (b"a", b"1"))
        log.roll()
        path = harness.directory / f"{0:020d}.log"
        log.close()
        old = legacy.message(1, 0, 5, b"a", b"x" * 100, timestamp_type=TimestampType.CREATE_TIME)
        path.write_bytes(old)
        log = harness.open(compacted(), clean=True)
        with pytest.raises(InvalidRecordError, match="old format 1 at offset 0"):
            clean(harness, log)
        assert path.read_bytes() == old

    def test_the_segment_is_as_old_as_what_it_was_made_of(self, harness: LogHarness, log: UnifiedLog) -> None:
        put(harness, log, (b"a", b"1"), timestamp_ms=-1)
        log.roll()
        segment = log.compaction.segments()[0]
        modified_ms = segment.largest_timestamp_ms
        clean(harness, log)
        cleaned = log.compaction.segments()[0]
        assert cleaned is not segment
        assert cleaned.largest_timestamp_ms == modified_ms
