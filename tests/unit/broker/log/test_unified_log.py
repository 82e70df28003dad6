"""Appends, reads and what a log says of itself."""

from __future__ import annotations

import struct

import pytest

from harness.broker.logs import TP, LogHarness, read_all
from kclient.broker.log.config import LogConfig
from kclient.broker.log.producer_state import AppendOrigin
from kclient.common.uuid import Uuid
from kclient.compress import CompressionType
from kclient.errors import (
    CorruptRecordError,
    InconsistentTopicIdError,
    InvalidRecordError,
    InvalidRequestError,
    InvalidTimestampError,
    KafkaStorageError,
    OffsetOutOfRangeError,
    RecordBatchTooLargeError,
    RecordTooLargeError,
)
from kclient.record import RecordBatch, TimestampType, iter_batches


def test_a_batch_gets_the_next_offsets_and_the_leaders_epoch(harness: LogHarness) -> None:
    log = harness.open()
    first = log.append_as_leader(harness.batch([b"a", b"b"]), 3)
    second = log.append_as_leader(harness.batch([b"c"]), 3)
    assert (first.first_offset, first.last_offset) == (0, 1)
    assert (second.first_offset, second.last_offset, second.is_duplicate) == (2, 2, False)
    assert second.max_timestamp_ms == harness.time.wall_ms()
    assert second.log_append_time_ms == -1
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark, log.last_stable_offset) == (
        0,
        3,
        3,
        3,
    )
    batches = list(iter_batches(log.read(0, 1 << 20).records))
    assert [(batch.base_offset, batch.partition_leader_epoch) for batch in batches] == [(0, 3), (2, 3)]
    assert all(batch.is_valid for batch in batches)
    assert log.latest_epoch == 3


def test_a_writable_buffer_is_changed_in_place_and_a_read_only_one_is_not(harness: LogHarness) -> None:
    log = harness.open()
    log.append_as_leader(harness.batch(), 0)
    writable = bytearray(harness.batch([b"w"]))
    log.append_as_leader(writable, 0)
    assert RecordBatch(memoryview(writable)).base_offset == 1
    readonly = harness.batch([b"r"])
    log.append_as_leader(readonly, 0)
    assert RecordBatch(memoryview(readonly)).base_offset == 0
    assert [record.value for record in read_all(log)] == [b"v", b"w", b"r"]


def test_a_coordinator_may_append_several_batches_at_once(harness: LogHarness) -> None:
    log = harness.open()
    info = log.append_as_leader(
        harness.batch([b"a"]) + harness.batch([b"b", b"c"]), 0, origin=AppendOrigin.COORDINATOR
    )
    assert (info.first_offset, info.last_offset) == (0, 2)
    with pytest.raises(InvalidRecordError, match="one batch"):
        log.append_as_leader(harness.batch() + harness.batch(), 0)


@pytest.mark.parametrize("codec", list(CompressionType))
def test_batches_of_every_codec_are_kept_as_they_are(harness: LogHarness, codec: CompressionType) -> None:
    log = harness.open()
    sent = harness.batch([b"x" * 100] * 50, compression=codec)
    log.append_as_leader(sent, 0)
    assert bytes(log.read(0, 1 << 20).records)[17:] == sent[17:]


def test_a_batch_whose_bytes_changed_on_the_way_is_refused(harness: LogHarness) -> None:
    log = harness.open()
    damaged = bytearray(harness.batch([b"value"]))
    damaged[-2] ^= 1
    with pytest.raises(CorruptRecordError, match="checksum"):
        log.append_as_leader(damaged, 0)
    with pytest.raises(CorruptRecordError, match="whole"):
        log.append_as_leader(harness.batch()[:-1], 0)
    with pytest.raises(CorruptRecordError, match="whole"):
        log.append_as_leader(b"", 0)
    assert log.log_end_offset == 0


def test_a_batch_above_max_message_bytes_is_refused(harness: LogHarness) -> None:
    log = harness.open(LogConfig(max_message_bytes=200))
    with pytest.raises(RecordTooLargeError, match=r"max\.message\.bytes"):
        log.append_as_leader(harness.batch([b"x" * 200]), 0)


def test_a_batch_above_segment_bytes_is_refused(harness: LogHarness) -> None:
    log = harness.open(LogConfig(segment_bytes=200))
    with pytest.raises(RecordBatchTooLargeError, match=r"segment\.bytes"):
        log.append_as_leader(harness.batch([b"x" * 200]), 0)


def change(batch: bytes, at: int, layout: str, value: int) -> bytearray:
    changed = bytearray(batch)
    struct.pack_into(layout, changed, at, value)
    RecordBatch(memoryview(changed)).update_checksum()
    return changed


def test_headers_that_contradict_the_records_are_refused(harness: LogHarness) -> None:
    log = harness.open()
    sent = harness.batch([b"a", b"b"])
    for at, layout, value in (
        (57, ">i", 3),  # count alone
        (57, ">i", 0),
        (23, ">i", 5),  # last offset delta alone
        (0, ">q", 7),  # base offset
        (21, ">h", 0x20),  # a control batch
        (16, ">b", 1),  # an old magic
    ):
        with pytest.raises(InvalidRecordError):
            log.append_as_leader(change(sent, at, layout, value), 0)
    with pytest.raises(InvalidTimestampError):
        log.append_as_leader(change(sent, 21, ">h", 8), 0)
    with pytest.raises(InvalidRecordError, match="sequence"):
        log.append_as_leader(harness.batch(pid=5, seq=-2), 0)
    assert log.log_end_offset == 0


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.LZ4])
def test_records_that_do_not_fill_their_batch_are_refused(
    harness: LogHarness, codec: CompressionType
) -> None:
    log = harness.open()
    sent = change(harness.batch([b"a", b"b", b"c"], compression=codec), 57, ">i", 2)
    with pytest.raises(InvalidRecordError, match="bytes follow the last record"):
        log.append_as_leader(change(bytes(sent), 23, ">i", 1), 0)
    sent = change(harness.batch([b"a", b"b"], compression=codec), 57, ">i", 3)
    with pytest.raises(InvalidRecordError, match="record 2 is cut off"):
        log.append_as_leader(change(bytes(sent), 23, ">i", 2), 0)


def test_a_record_that_readers_could_not_take_apart_is_refused(harness: LogHarness) -> None:
    log = harness.open()
    sent = harness.batch([b"value"])
    with pytest.raises(InvalidRecordError, match="t-0: the records of a batch are malformed"):
        log.append_as_leader(change(sent, sent.index(b"value") - 1, ">B", 90), 0)
    assert log.log_end_offset == 0


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.LZ4])
@pytest.mark.parametrize("claimed_ms", [-1, 0, 5, 2**63 - 1])
def test_the_largest_timestamp_is_that_of_the_records_whatever_the_batch_says(
    harness: LogHarness, claimed_ms: int, codec: CompressionType
) -> None:
    log = harness.open()
    sent = harness.batch([b"a", b"b", b"c"], timestamps_ms=[1000, 3000, 2000], compression=codec)
    info = log.append_as_leader(change(sent, 35, ">q", claimed_ms), 0)
    assert info.max_timestamp_ms == 3000
    (written,) = iter_batches(log.read(0, 1 << 20).records)
    assert (written.max_timestamp_ms, written.is_valid) == (3000, True)
    assert log.offset_for_timestamp(2500) == (3000, 1, 0)
    assert log.offset_for_timestamp(3001) is None


def test_a_small_largest_timestamp_does_not_hide_a_record_of_the_future(harness: LogHarness) -> None:
    log = harness.open()
    sent = harness.batch([b"a", b"b"], timestamps_ms=[0, harness.time.wall_ms() + 3_600_001])
    with pytest.raises(InvalidTimestampError) as caught:
        log.append_as_leader(change(sent, 35, ">q", 0), 0)
    assert [index for index, _ in caught.value.record_errors] == [1]


def test_a_compacted_topic_names_the_records_without_keys(harness: LogHarness) -> None:
    log = harness.open(LogConfig(cleanup_policy=("compact",)))
    with pytest.raises(InvalidRecordError) as caught:
        log.append_as_leader(harness.batch([b"a", b"b", b"c"], keys=[None, b"k", None]), 0)
    assert [index for index, _ in caught.value.record_errors] == [0, 2]
    log.append_as_leader(harness.batch([b"a", None], keys=[b"k", b"k"]), 0)


def test_timestamps_outside_the_limits_are_refused_and_named(harness: LogHarness) -> None:
    log = harness.open(LogConfig(message_timestamp_before_max_ms=1000, message_timestamp_after_max_ms=500))
    now = harness.time.wall_ms()
    with pytest.raises(InvalidTimestampError) as caught:
        log.append_as_leader(harness.batch([b"a"] * 4, timestamps_ms=[now, now - 1001, now + 501, -1]), 0)
    assert [index for index, _ in caught.value.record_errors] == [1, 2]
    log.append_as_leader(harness.batch([b"a"] * 2, timestamps_ms=[now - 1000, now + 500]), 0)


def test_the_future_is_limited_to_an_hour_by_default(harness: LogHarness) -> None:
    log = harness.open()
    log.append_as_leader(harness.batch(timestamp_ms=harness.time.wall_ms() + 3_600_000), 0)
    log.append_as_leader(harness.batch(timestamp_ms=1), 0)
    with pytest.raises(InvalidTimestampError):
        log.append_as_leader(harness.batch(timestamp_ms=harness.time.wall_ms() + 3_600_001), 0)


def test_log_append_time_is_the_brokers_clock(harness: LogHarness) -> None:
    log = harness.open(LogConfig(message_timestamp_type="LogAppendTime"))
    harness.time.advance(12345)
    info = log.append_as_leader(harness.batch([b"a", b"b"], timestamp_ms=17, pid=1), 0)
    assert info.log_append_time_ms == info.max_timestamp_ms == harness.time.wall_ms()
    records = read_all(log)
    assert [record.timestamp_ms for record in records] == [harness.time.wall_ms()] * 2
    assert records[0].timestamp_type is TimestampType.LOG_APPEND_TIME
    harness.time.advance(1000)
    again = log.append_as_leader(harness.batch([b"a", b"b"], timestamp_ms=17, pid=1), 0)
    assert (again.is_duplicate, again.log_append_time_ms) == (True, info.log_append_time_ms)


def test_a_topic_with_a_codec_of_its_own_recompresses(harness: LogHarness) -> None:
    log = harness.open(LogConfig(compression_type="zstd", compression_zstd_level=5))
    values = [b"value %d" % i for i in range(100)]
    log.append_as_leader(harness.batch(values, compression=CompressionType.GZIP, pid=3, seq=9), 0)
    (batch,) = iter_batches(log.read(0, 1 << 20).records)
    assert batch.is_valid
    assert (batch.compression_type, batch.producer_id, batch.base_sequence) == (CompressionType.ZSTD, 3, 9)
    assert [record.value for record in batch.records()] == values
    log.update_config(LogConfig(compression_type="uncompressed"))
    log.append_as_leader(harness.batch(values, compression=CompressionType.LZ4), 0)
    (batch,) = iter_batches(log.read(100, 1 << 20).records)
    assert batch.compression_type is CompressionType.NONE
    assert [record.value for record in batch.records()] == values


def test_reading_outside_the_log_is_out_of_range_and_at_its_end_empty(harness: LogHarness) -> None:
    log = harness.open()
    for _ in range(3):
        log.append_as_leader(harness.batch(), 0)
    log.delete_records_before(1)
    found = log.read(3, 100)
    assert (len(found.records), found.offset, found.high_watermark, found.log_start_offset) == (0, 3, 3, 1)
    for offset in (0, 4, -1):
        with pytest.raises(OffsetOutOfRangeError, match="between 1 and 3"):
            log.read(offset, 100)


def test_records_are_deleted_up_to_the_high_watermark_only(harness: LogHarness) -> None:
    log = harness.open()
    for _ in range(4):
        log.append_as_leader(harness.batch(), 0)
    assert log.delete_records_before(2) == 2
    assert log.delete_records_before(1) == 2
    for offset in (5, -1):
        with pytest.raises(OffsetOutOfRangeError):
            log.delete_records_before(offset)
    assert [record.offset for record in read_all(log)] == [2, 3]


def test_the_epochs_say_where_each_ended(harness: LogHarness) -> None:
    log = harness.open()
    for epoch in (0, 0, 2, 5):
        log.append_as_leader(harness.batch(), epoch)
    assert [log.end_offset_for_epoch(epoch) for epoch in (0, 1, 2, 4, 5)] == [
        (0, 2),
        (0, 2),
        (2, 3),
        (2, 3),
        (5, 4),
    ]
    assert log.end_offset_for_epoch(6) == log.end_offset_for_epoch(-1) == (-1, -1)


def test_truncation_cuts_at_the_batch_and_forgets_what_it_held(harness: LogHarness) -> None:
    log = harness.open(LogConfig(index_interval_bytes=0))
    for i in range(6):
        if i in (2, 4):
            log.roll()
        log.append_as_leader(harness.batch([b"%d" % i], pid=1, seq=i, timestamp_ms=1000 + i), i)
    assert not log.truncate_to(6)
    assert log.truncate_to(3)
    assert (log.log_end_offset, log.segment_base_offsets, log.latest_epoch) == (3, [0, 2], 2)
    assert [record.value for record in read_all(log)] == [b"0", b"1", b"2"]
    assert log.offset_for_timestamp(-3) == (1002, 2, 2)
    # The producer's sequences of what was cut are free again.
    assert log.append_as_leader(harness.batch([b"new"], pid=1, seq=3), 7).first_offset == 3
    assert log.read(3, 100).records
    log.delete_records_before(2)
    assert log.truncate_to(0)
    assert (log.log_start_offset, log.log_end_offset) == (0, 0)
    with pytest.raises(InvalidRequestError):
        log.truncate_to(-1)


def test_truncating_before_the_first_segment_begins_the_log_anew(harness: LogHarness) -> None:
    log = harness.open(LogConfig(retention_bytes=0, file_delete_delay_ms=0))
    for _ in range(3):
        log.append_as_leader(harness.batch(), 0)
    log.delete_old_segments()
    log.append_as_leader(harness.batch(), 0)
    assert log.segment_base_offsets == [3]
    log.truncate_to(1)
    assert (log.log_start_offset, log.log_end_offset, log.segment_base_offsets) == (1, 1, [1])
    assert log.append_as_leader(harness.batch(), 0).first_offset == 1


def test_a_closed_log_refuses_to_work(harness: LogHarness) -> None:
    log = harness.open()
    log.close()
    log.close()
    for use in (
        lambda: log.append_as_leader(harness.batch(), 0),
        lambda: log.read(0, 100),
        lambda: log.offset_for_timestamp(0),
        log.roll,
        log.flusher.flush,
    ):
        with pytest.raises(KafkaStorageError, match="closed"):
            use()


def test_the_topic_id_is_kept_with_the_log(harness: LogHarness) -> None:
    log = harness.open()
    topic_id = Uuid.random()
    assert log.topic_id is None
    log.assign_topic_id(topic_id)
    log.assign_topic_id(topic_id)
    with pytest.raises(InconsistentTopicIdError, match=str(TP)):
        log.assign_topic_id(Uuid.random())
    log.close()
    assert harness.open().topic_id == topic_id
    text = (harness.directory / "partition.metadata").read_text()
    assert text == f"version: 0\ntopic_id: {topic_id}\n"
