"""Appends of a follower: batches stay as their leader wrote them."""

from __future__ import annotations

import pytest

from harness.broker.logs import TP, LogHarness, read_all
from kclient.broker.log.config import LOG_APPEND_TIME, LogConfig
from kclient.broker.log.log_manager import LogManager
from kclient.broker.log.unified_log import AppendOrigin, FetchIsolation, UnifiedLog
from kclient.common.topic_partition import TopicPartition
from kclient.errors import CorruptRecordError, InvalidRecordError, OutOfOrderSequenceError
from kclient.errors import UnknownTopicOrPartitionError as UnknownError
from kclient.record import ControlRecordType, EndTransactionMarker, RecordBatch, iter_batches


def sent(harness: LogHarness, base_offset: int, epoch: int, *values: bytes, **fields: object) -> bytes:
    """A batch as a leader sends it to its followers."""
    data = bytearray(harness.batch(values or (b"v",), **fields))
    (batch,) = iter_batches(memoryview(data))
    assert isinstance(batch, RecordBatch)
    batch.set_base_offset(base_offset)
    batch.set_partition_leader_epoch(epoch)
    return bytes(data)


def everything(log: UnifiedLog) -> bytes:
    return bytes(log.read(log.log_start_offset, 1 << 20, isolation=FetchIsolation.LOG_END).content())


def test_a_follower_has_its_leaders_bytes(harness: LogHarness) -> None:
    log = harness.open_replica(LogConfig(message_timestamp_type=LOG_APPEND_TIME, compression_type="gzip"))
    records = sent(harness, 0, 3, b"a", b"b", timestamp_ms=5) + sent(harness, 2, 3, b"c")
    info = log.append_as_follower(records, 3)
    assert (info.first_offset, info.last_offset, info.size_bytes) == (0, 2, len(records))
    assert everything(log) == records
    assert (log.log_end_offset, log.high_watermark) == (3, 0)


def test_offsets_that_compaction_took_away_stay_away(harness: LogHarness) -> None:
    log = harness.open_replica(LogConfig(index_interval_bytes=0))
    records = sent(harness, 4, 0) + sent(harness, 9, 0)
    assert log.append_as_follower(records, 0).first_offset == 4
    assert log.log_end_offset == 10
    assert [record.offset for record in read_all(log)] == [4, 9]


def test_epochs_begin_where_their_first_batch_lies(harness: LogHarness) -> None:
    log = harness.open_replica()
    log.append_as_follower(sent(harness, 0, 2) + sent(harness, 1, 2) + sent(harness, 2, 5), 5)
    log.append_as_follower(sent(harness, 3, 7), 7)
    assert [log.end_offset_for_epoch(epoch) for epoch in (2, 5, 7)] == [(2, 2), (5, 3), (7, 4)]


def test_batches_of_a_later_leader_are_left_out_with_all_behind_them(harness: LogHarness) -> None:
    log = harness.open_replica()
    records = sent(harness, 0, 2) + sent(harness, 1, 4) + sent(harness, 2, 2)
    info = log.append_as_follower(records, 3)
    assert (info.last_offset, log.log_end_offset, log.latest_epoch) == (0, 1, 2)
    info = log.append_as_follower(sent(harness, 1, 4), 3)
    assert (info.size_bytes, log.log_end_offset) == (0, 1)


def test_offsets_that_do_not_rise_are_refused_and_nothing_is_written(harness: LogHarness) -> None:
    log = harness.open_replica()
    log.append_as_follower(sent(harness, 0, 0, b"a", b"b"), 0)
    for records in (sent(harness, 1, 0), sent(harness, 2, 0, b"a", b"b") + sent(harness, 3, 0)):
        with pytest.raises(
            InvalidRecordError, match=r"t-0: a batch of offsets \d to \d cannot follow offset \d"
        ):
            log.append_as_follower(records, 0)
    assert log.log_end_offset == 2
    assert len(read_all(log)) == 2


def test_a_batch_that_was_damaged_on_its_way_is_refused(harness: LogHarness) -> None:
    log = harness.open_replica()
    records = bytearray(sent(harness, 0, 0) + sent(harness, 1, 0))
    records[-1] ^= 1
    with pytest.raises(CorruptRecordError):
        log.append_as_follower(records, 0)
    assert log.log_end_offset == 0


def test_a_batch_that_is_cut_is_left_out(harness: LogHarness) -> None:
    log = harness.open_replica()
    assert log.append_as_follower(sent(harness, 0, 0) + sent(harness, 1, 0)[:-1], 0).last_offset == 0


def test_the_limits_of_the_follower_do_not_hold_for_what_its_leader_took(harness: LogHarness) -> None:
    one = sent(harness, 0, 0, b"x" * 200)
    log = harness.open_replica(LogConfig(max_message_bytes=100, segment_bytes=2 * len(one)))
    log.append_as_follower(b"".join(sent(harness, offset, 0, b"x" * 200) for offset in range(5)), 0)
    assert (log.log_end_offset, log.segment_base_offsets) == (5, [0, 2, 4])
    log.append_as_follower(sent(harness, 5, 0, b"x" * 2000), 0)
    assert log.segment_base_offsets == [0, 2, 4, 5]


def test_sequences_are_the_leaders_to_check_but_known_afterwards(harness: LogHarness) -> None:
    log = harness.open_replica()
    log.append_as_follower(sent(harness, 0, 0, pid=1, seq=7), 0)
    log.append_as_follower(sent(harness, 1, 0, pid=1, seq=3), 0)
    with pytest.raises(OutOfOrderSequenceError):
        log.append_as_leader(harness.batch(pid=1, seq=9), 1)
    assert log.append_as_leader(harness.batch(pid=1, seq=4), 1).first_offset == 2


def test_aborted_transactions_are_found_in_a_follower(harness: LogHarness) -> None:
    log = harness.open_replica()
    abort = EndTransactionMarker(ControlRecordType.ABORT, 1).batch(1, harness.time.wall_ms(), 0, 1, 0)
    log.append_as_follower(sent(harness, 0, 0, pid=1, transactional=True) + bytes(abort), 0)
    log.advance_high_watermark(log.log_end)
    assert log.read(0, 1000, isolation=FetchIsolation.TXN_COMMITTED).aborted == [(1, 0)]


def test_a_follower_cuts_its_log_back_and_goes_on_with_what_the_new_leader_has(harness: LogHarness) -> None:
    place = harness.root / "logs"
    manager = LogManager([place], LogConfig(), harness.time, harness.scheduler)
    manager.startup()
    log = manager.get_or_create_log(TP)
    log.append_as_follower(b"".join(sent(harness, offset, 0, b"old") for offset in range(4)), 0)
    log.flusher.flush()
    manager.checkpoint_recovery_points()
    assert manager.truncate_log(TP, 2)
    assert not manager.truncate_log(TP, 2)
    assert (place / "recovery-point-offset-checkpoint").read_text() == "0\n1\nt 0 2\n"
    log.append_as_follower(sent(harness, 2, 1, b"new"), 1)
    assert [record.value for record in read_all(log)] == [b"old", b"old", b"new"]
    assert log.end_offset_for_epoch(0) == (0, 2)
    with pytest.raises(UnknownError):
        manager.truncate_log(TopicPartition("u", 0), 2)
    manager.shutdown()


def test_a_coordinators_and_a_clients_batches_still_get_their_offsets_from_the_leader(
    harness: LogHarness,
) -> None:
    log = harness.open_replica()
    log.append_as_follower(sent(harness, 5, 2), 2)
    for origin in (AppendOrigin.CLIENT, AppendOrigin.COORDINATOR):
        log.append_as_leader(harness.batch(), 3, origin=origin)
    assert [record.offset for record in read_all(log)] == [5, 6, 7]
