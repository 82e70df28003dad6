"""The part of an append that changes the log's state: offsets, epochs, producers, and new segments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from harness.broker.logs import TP, LogHarness
from kclient.broker.log.checkpoints import EpochCheckpoint
from kclient.broker.log.config import LOG_APPEND_TIME, LogConfig
from kclient.broker.log.epoch_cache import LeaderEpochCache
from kclient.broker.log.local_log import LocalLog
from kclient.broker.log.log_appender import LogAppender
from kclient.broker.log.log_types import LogAppendInfo
from kclient.broker.log.producer_state import AppendOrigin
from kclient.broker.log.producer_state_manager import ProducerStateManager
from kclient.broker.log.validator import ValidRecords
from kclient.errors import OutOfOrderSequenceError, RecordBatchTooLargeError
from kclient.record import ControlRecordType, EndTransactionMarker, RecordBatch, iter_batches
from kclient.record.open_files import OpenFiles

COORDINATOR = AppendOrigin.COORDINATOR


class Appending:
    """An appender over parts of its own."""

    def __init__(self, harness: LogHarness, **config: Any) -> None:
        self.harness = harness
        self.local = LocalLog(TP, harness.directory, LogConfig(**config), harness.time, OpenFiles(8))
        self.local.open_segment(0)
        self.producers = ProducerStateManager(TP, harness.directory)
        self.epochs = LeaderEpochCache(TP, EpochCheckpoint(harness.directory / "epochs"))
        self.rolled: list[list[int]] = []
        self.appender = LogAppender(
            self.local, self.producers, self.epochs, harness.time, lambda: self.rolled.append(self.bases)
        )

    @property
    def bases(self) -> list[int]:
        return self.local.segments.base_offsets

    def append(
        self, *batches: bytes, epoch: int = 0, origin: AppendOrigin = AppendOrigin.CLIENT
    ) -> LogAppendInfo:
        data = memoryview(bytearray(b"".join(batches)))
        valid = ValidRecords(data, [each for each in iter_batches(data) if isinstance(each, RecordBatch)])
        return self.appender.append_as_leader(valid, epoch, origin, log_start_offset=0)

    def written(self) -> list[RecordBatch]:
        return [batch for segment in self.local.segments for _, batch in segment.batches()]


@pytest.fixture
def a(harness: LogHarness) -> Iterator[Appending]:
    made = Appending(harness)
    yield made
    for segment in made.local.segments:
        segment.close_files()


def marker(harness: LogHarness, pid: int, *, abort: bool) -> bytes:
    kind = ControlRecordType.ABORT if abort else ControlRecordType.COMMIT
    return EndTransactionMarker(kind, 1).batch(0, harness.time.wall_ms(), 0, pid, 0)


def test_batches_get_offsets_from_the_end_on_and_the_epoch_and_stay_valid(
    a: Appending, harness: LogHarness
) -> None:
    a.append(harness.batch([b"a", b"b"]), epoch=3)
    info = a.append(harness.batch([b"c"]), harness.batch([b"d", b"e"]), epoch=4, origin=COORDINATOR)
    assert (info.first_offset, info.last_offset) == (2, 4)
    assert [(b.base_offset, b.last_offset, b.partition_leader_epoch) for b in a.written()] == [
        (0, 1, 3),
        (2, 2, 4),
        (3, 4, 4),
    ]
    for batch in a.written():
        batch.ensure_valid()


def test_an_epoch_begins_where_its_first_batch_lies(a: Appending, harness: LogHarness) -> None:
    for epoch in (3, 3, 5):
        a.append(harness.batch([b"a", b"b"]), epoch=epoch)
    assert a.epochs.entries == [(3, 0), (5, 4)]


def test_the_largest_timestamp_of_all_batches_is_told(a: Appending, harness: LogHarness) -> None:
    now_ms = harness.time.wall_ms()
    batches = [harness.batch(timestamp_ms=now_ms + late) for late in (5, 9, 1)]
    info = a.append(*batches, origin=COORDINATOR)
    assert (info.max_timestamp_ms, info.log_append_time_ms) == (now_ms + 9, -1)


def test_the_broker_stamps_the_batches_of_a_topic_with_append_time(harness: LogHarness) -> None:
    a = Appending(harness, message_timestamp_type=LOG_APPEND_TIME)
    info = a.append(harness.batch(timestamp_ms=1))
    now_ms = harness.time.wall_ms()
    assert (info.max_timestamp_ms, info.log_append_time_ms) == (now_ms, now_ms)
    assert [record.timestamp_ms for batch in a.written() for record in batch.records()] == [now_ms]
    a.local.close()


def test_batches_larger_than_a_segment_are_refused_and_nothing_is_changed(harness: LogHarness) -> None:
    batch = harness.batch([b"x" * 100], pid=5)
    a = Appending(harness, segment_bytes=len(batch) - 1)
    with pytest.raises(RecordBatchTooLargeError, match=r"segment\.bytes"):
        a.append(batch)
    assert (a.local.log_end_offset, a.epochs.entries, a.producers.producers) == (0, [], {})
    a.local.close()


class TestProducers:
    def test_a_batch_that_is_there_already_is_answered_with_its_place_and_not_written(
        self, a: Appending, harness: LogHarness
    ) -> None:
        a.append(harness.batch([b"other"]))
        batch = harness.batch([b"a", b"b"], pid=5)
        a.append(batch)
        info = a.append(batch)
        assert (info.first_offset, info.last_offset, info.is_duplicate, info.size_bytes) == (1, 2, True, 0)
        assert a.local.log_end_offset == 3

    def test_the_broker_knows_when_it_wrote_a_duplicate_if_it_stamps_batches(
        self, harness: LogHarness
    ) -> None:
        a = Appending(harness, message_timestamp_type=LOG_APPEND_TIME)
        batch = harness.batch(timestamp_ms=1, pid=5)
        first_ms = a.append(batch).log_append_time_ms
        harness.time.advance(1000)
        assert a.append(batch).log_append_time_ms == first_ms
        a.local.close()

    def test_what_comes_from_a_coordinator_is_never_taken_for_a_duplicate(
        self, a: Appending, harness: LogHarness
    ) -> None:
        batch = harness.batch(pid=5)
        a.append(batch)
        assert not a.append(batch, origin=COORDINATOR).is_duplicate

    def test_a_refused_sequence_changes_nothing(self, a: Appending, harness: LogHarness) -> None:
        a.append(harness.batch(pid=5, seq=0))
        with pytest.raises(OutOfOrderSequenceError):
            a.append(harness.batch(pid=5, seq=7), epoch=9)
        assert a.local.log_end_offset == 1
        assert a.epochs.latest_epoch == 0
        a.append(harness.batch(pid=5, seq=1))

    def test_the_state_is_behind_what_was_written(self, a: Appending, harness: LogHarness) -> None:
        a.append(harness.batch([b"a", b"b"], pid=5))
        a.append(harness.batch())
        assert a.producers.producers[5].last_offset == 1
        assert a.producers.map_end_offset == 3

    def test_a_write_that_fails_leaves_the_producer_free_to_try_again(
        self, a: Appending, harness: LogHarness, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(self: object, data: object, batches: object) -> None:
            raise OSError("the disk is full")

        batch = harness.batch(pid=5)
        with monkeypatch.context() as patch:
            patch.setattr(type(a.local.segments.active), "append", full)
            with pytest.raises(OSError, match="full"):
                a.append(batch)
        assert a.producers.producers == {}
        assert not a.append(batch).is_duplicate

    @pytest.mark.parametrize("abort", [True, False])
    def test_a_transaction_is_open_until_its_marker_and_readers_find_it_if_it_was_aborted(
        self, a: Appending, harness: LogHarness, abort: bool
    ) -> None:
        a.append(harness.batch())
        a.append(harness.batch([b"a", b"b"], pid=5, transactional=True))
        assert a.producers.first_unstable_offset == 1
        a.append(marker(harness, 5, abort=abort), origin=COORDINATOR)
        assert a.producers.first_unstable_offset == 1, "the marker may be lost yet"
        a.producers.on_high_watermark_updated(3)
        assert a.producers.first_unstable_offset == 1
        a.producers.on_high_watermark_updated(4)
        assert a.producers.first_unstable_offset is None
        found = [
            (t.producer_id, t.first_offset, t.last_offset) for t in a.local.segments.active.txn_index.entries
        ]
        assert found == ([(5, 1, 3)] if abort else [])


class TestRolling:
    def test_what_does_not_fit_begins_a_segment_whole(self, harness: LogHarness) -> None:
        batch = harness.batch([b"x" * 100])
        a = Appending(harness, segment_bytes=2 * len(batch))
        for _ in range(3):
            a.append(batch)
        assert a.bases == [0, 2]
        a.append(batch, batch, origin=COORDINATOR)
        assert a.bases == [0, 2, 3]
        assert a.rolled == [[0, 2], [0, 2, 3]]
        a.local.close()

    def test_the_producers_as_they_are_at_the_beginning_of_a_segment_are_kept(
        self, harness: LogHarness
    ) -> None:
        batch = harness.batch(pid=5)
        a = Appending(harness, segment_bytes=len(batch))
        a.append(batch)
        assert a.producers.snapshot_offsets() == []
        a.append(harness.batch(pid=5, seq=1))
        assert a.bases == [0, 1]
        assert a.producers.snapshot_offsets() == [1]
        again = ProducerStateManager(TP, harness.directory)
        again.truncate_and_reload(0, 1, harness.time.wall_ms())
        assert again.producers[5].last_sequence == 0
        a.local.close()
