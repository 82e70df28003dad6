"""Checks of a leader before it appends: what is refused and why, and what is put right."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import pytest

from kclient.broker.log.config import LogConfig
from kclient.broker.log.producer_state import AppendOrigin
from kclient.broker.log.validator import ValidRecords, validate_records
from kclient.common.topic_partition import TopicPartition
from kclient.compress import LEVELS, CompressionType, compress
from kclient.errors import (
    CorruptRecordError,
    InvalidRecordError,
    InvalidTimestampError,
    RecordTooLargeError,
)
from kclient.record import MemoryRecordsBuilder
from kclient.record import constants as c
from kclient.record.batch import RecordBatch
from kclient.record.record import TimestampType

TP = TopicPartition("t", 3)
NOW_MS = 1_700_000_000_000
CLIENT, COORDINATOR, REPLICATION = AppendOrigin.CLIENT, AppendOrigin.COORDINATOR, AppendOrigin.REPLICATION


def batch(
    values: Sequence[bytes] = (b"a", b"b"),
    *,
    keys: Sequence[bytes | None] | None = None,
    stamps_ms: Sequence[int] | None = None,
    **options: Any,
) -> bytearray:
    builder = MemoryRecordsBuilder(**options)
    for index, value in enumerate(values):
        stamp_ms = NOW_MS if stamps_ms is None else stamps_ms[index]
        builder.append(stamp_ms, None if keys is None else keys[index], value)
    return bytearray(builder.close())


def validate(data: bytearray, origin: AppendOrigin = CLIENT, **settings: Any) -> ValidRecords:
    """Validate `data` for a topic with `settings`, which are read as topics' are."""
    configs = {name.replace("_", "."): str(value) for name, value in settings.items()}
    return validate_records(memoryview(data), LogConfig.from_topic_configs(configs), origin, TP, NOW_MS)


def changed(data: bytearray, layout: str, at: int, value: int) -> bytearray:
    """The batch with another field in its header, and the checksum that belongs to it."""
    struct.pack_into(layout, data, at, value)
    RecordBatch(memoryview(data)).update_checksum()
    return data


def test_a_good_batch_is_taken_as_it_lies() -> None:
    data = batch()
    valid = validate(data)
    assert valid.data.obj is data
    assert valid.data == data
    assert [each.count for each in valid.batches] == [2]


def test_bytes_after_the_last_whole_batch_are_left_out() -> None:
    whole = batch()
    valid = validate(whole + batch()[:-1])
    assert valid.data == whole


def test_no_whole_batch_at_all_is_corrupt() -> None:
    with pytest.raises(CorruptRecordError, match=r"t-3: 20 bytes hold no whole batch"):
        validate(batch()[:20])


def test_a_client_sends_one_batch_and_a_coordinator_as_many_as_it_likes() -> None:
    with pytest.raises(InvalidRecordError, match="may carry one batch"):
        validate(batch() + batch())
    assert len(validate(batch() + batch(), COORDINATOR).batches) == 2


def test_a_client_does_not_choose_offsets() -> None:
    with pytest.raises(InvalidRecordError, match=r"base offset .* must be 0, not 7"):
        validate(batch(base_offset=7))
    assert validate(batch(base_offset=7), REPLICATION).batches[0].base_offset == 7


@pytest.mark.parametrize("magic", [0, 1])
def test_old_formats_are_refused(magic: int) -> None:
    kind = TimestampType.NO_TIMESTAMP_TYPE if magic == 0 else TimestampType.CREATE_TIME
    with pytest.raises(InvalidRecordError, match=f"magic 2, not {magic}; use a newer producer"):
        validate(batch(magic=magic, timestamp_type=kind))


def test_the_limit_of_a_batch_is_met_exactly() -> None:
    size = len(batch())
    assert validate(batch(), max_message_bytes=size)
    with pytest.raises(RecordTooLargeError, match=rf"{size} bytes is larger than max.message.bytes"):
        validate(batch(), max_message_bytes=size - 1)


def test_a_changed_byte_is_found_by_the_checksum() -> None:
    data = batch()
    data[-1] ^= 1
    with pytest.raises(CorruptRecordError, match="does not match its checksum"):
        validate(data)


def test_what_a_leader_has_checked_is_not_checked_again() -> None:
    assert validate(batch(keys=[None, None]), REPLICATION, cleanup_policy="compact")


@pytest.mark.parametrize(("count", "delta"), [(0, -1), (2, 5), (-1, -2)])
def test_a_count_that_does_not_fit_the_offsets_is_refused(count: int, delta: int) -> None:
    data = changed(batch(), ">i", c.COUNT_AT, count)
    with pytest.raises(
        InvalidRecordError, match=f"{count} records cannot have the last offset delta {delta}"
    ):
        validate(changed(data, ">i", c.LAST_OFFSET_DELTA_AT, delta))


def test_clients_write_no_control_records() -> None:
    data = changed(batch([b"a"], producer_id=7, producer_epoch=0, base_sequence=0), ">h", 21, 0x30)
    with pytest.raises(InvalidRecordError, match="may not write control records"):
        validate(data)


def test_a_count_that_does_not_fit_the_records_is_refused() -> None:
    data = changed(changed(batch(), ">i", c.COUNT_AT, 3), ">i", c.LAST_OFFSET_DELTA_AT, 2)
    with pytest.raises(InvalidRecordError, match="the records of a batch are malformed"):
        validate(data)


def test_a_producer_does_not_say_when_the_log_took_a_record() -> None:
    with pytest.raises(InvalidTimestampError, match="LogAppendTime"):
        validate(batch(timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time_ms=NOW_MS))


def test_a_sequence_below_zero_is_refused() -> None:
    data = changed(batch(producer_id=5, producer_epoch=0, base_sequence=0), ">i", c.BASE_SEQUENCE_AT, -2)
    with pytest.raises(InvalidRecordError, match="sequence -2 of producer 5 is negative"):
        validate(data)


def test_the_largest_timestamp_of_the_header_is_not_believed() -> None:
    data = changed(batch(stamps_ms=[NOW_MS, NOW_MS - 9]), ">q", c.MAX_TIMESTAMP_AT, NOW_MS + 12345)
    (valid,) = validate(data).batches
    assert valid.max_timestamp_ms == NOW_MS
    assert valid.is_valid


class TestTimestamps:
    def test_of_the_future_are_refused_with_the_index_of_each(self) -> None:
        with pytest.raises(InvalidTimestampError, match="2 records were rejected") as refused:
            validate(
                batch([b"a"] * 3, stamps_ms=[NOW_MS + 1001, NOW_MS + 1000, NOW_MS + 2000]),
                message_timestamp_after_max_ms=1000,
            )
        assert [index for index, _ in refused.value.record_errors] == [0, 2]

    def test_of_the_past_are_refused_where_the_topic_says_so(self) -> None:
        data = batch(stamps_ms=[NOW_MS - 1000, NOW_MS - 1001])
        assert validate(bytearray(data))
        with pytest.raises(InvalidTimestampError) as refused:
            validate(data, message_timestamp_before_max_ms=1000)
        assert [index for index, _ in refused.value.record_errors] == [1]

    def test_do_not_matter_where_the_broker_sets_them(self) -> None:
        data = batch(stamps_ms=[NOW_MS + 10**9, 0])
        assert validate(data, message_timestamp_type="LogAppendTime", message_timestamp_before_max_ms=1)

    def test_that_are_missing_are_no_error(self) -> None:
        data = batch(stamps_ms=[-1, -1])
        assert validate(data, message_timestamp_before_max_ms=1000)


class TestCompactedTopics:
    def test_take_records_with_keys(self) -> None:
        assert validate(batch(keys=[b"k", b""]), cleanup_policy="compact")

    def test_refuse_those_without_by_index_and_show_three(self) -> None:
        keys = [b"k", *[None] * 5]
        with pytest.raises(InvalidRecordError) as refused:
            validate(batch([b"v"] * 6, keys=keys), cleanup_policy="compact,delete")
        assert [index for index, _ in refused.value.record_errors] == [1, 2, 3, 4, 5]
        assert str(refused.value).count("without key") == 3

    @pytest.mark.parametrize("codec", CompressionType)
    def test_look_into_compressed_batches(self, codec: CompressionType) -> None:
        with pytest.raises(InvalidRecordError, match="without key"):
            validate(batch(keys=[b"k", None], compression=codec), cleanup_policy="compact")


VALUES = [b"value %d" % number for number in range(500)]


class TestTheTopicsOwnCodec:
    @pytest.mark.parametrize("target", CompressionType)
    @pytest.mark.parametrize("sent", [CompressionType.NONE, CompressionType.GZIP])
    def test_takes_the_place_of_the_producers(self, target: CompressionType, sent: CompressionType) -> None:
        name = "uncompressed" if target is CompressionType.NONE else target.label
        data = batch(VALUES, compression=sent, producer_id=5, producer_epoch=1, base_sequence=9)
        (valid,) = validate(data, compression_type=name).batches
        assert valid.compression_type is target
        assert valid.is_valid
        assert (valid.producer_id, valid.producer_epoch, valid.base_sequence) == (5, 1, 9)
        assert [record.value for record in valid.records()] == VALUES

    @pytest.mark.parametrize("target", [each for each in CompressionType if each in LEVELS])
    def test_has_the_topics_level(self, target: CompressionType) -> None:
        levels = LEVELS.get(target)
        assert levels is not None
        plain = validate(batch(VALUES)).batches[0].payload
        expected = compress(target, plain, levels.highest)
        settings = {"compression_type": target.label, f"compression_{target.label}_level": levels.highest}
        (valid,) = validate(batch(VALUES), **settings).batches
        assert valid.payload == expected != compress(target, plain)

    def test_leaves_batches_that_have_it_as_they_are(self) -> None:
        data = batch(VALUES, compression=CompressionType.GZIP, level=1)
        assert validate(data, compression_type="gzip").data.obj is data

    def test_is_the_producers_by_default(self) -> None:
        data = batch(VALUES, compression=CompressionType.LZ4)
        assert validate(data).batches[0].compression_type is CompressionType.LZ4
