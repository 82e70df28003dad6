"""Batches of magic 2 through their bytes."""

from __future__ import annotations

from typing import Any

import pytest

from kclient.compress import CompressionType, DecompressionError
from kclient.errors import CorruptRecordError, InvalidRecordError, UnsupportedCompressionTypeError
from kclient.record import MemoryRecordsBuilder, RecordBatch, TimestampType
from kclient.record import constants as c


def made(count: int = 3, **settings: Any) -> RecordBatch:
    builder = MemoryRecordsBuilder(**{"base_offset": 10, **settings})
    for n in range(count):
        builder.append(1000 + n, b"k", b"%d" % n)
    return RecordBatch(memoryview(bytearray(builder.close())))


def test_what_follows_the_batch_is_not_part_of_it() -> None:
    data = bytes(made().view)
    batch = RecordBatch(memoryview(data + b"more"))
    assert bytes(batch.view) == data
    assert batch.is_valid


@pytest.mark.parametrize("size", [0, 60, 62, 80])
def test_there_must_be_room_for_all_of_it(size: int) -> None:
    with pytest.raises(CorruptRecordError):
        RecordBatch(made().view[:size])


def test_moving_a_batch_leaves_its_checksum_right() -> None:
    batch = made()
    batch.set_base_offset(1 << 40)
    batch.set_partition_leader_epoch(77)
    batch.ensure_valid()
    assert (batch.base_offset, batch.last_offset, batch.next_offset) == (
        1 << 40,
        (1 << 40) + 2,
        (1 << 40) + 3,
    )
    assert batch.partition_leader_epoch == 77
    batch.set_base_offset(97)
    assert [record.offset for record in batch.records()] == [97, 98, 99]


def test_log_append_time_is_given_to_all_records_with_a_new_checksum() -> None:
    batch = made()
    before = batch.checksum
    batch.set_log_append_time(5555)
    batch.ensure_valid()
    assert batch.checksum != before
    assert batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert {(record.timestamp_ms, record.timestamp_type) for record in batch.records()} == {
        (5555, TimestampType.LOG_APPEND_TIME)
    }
    batch.set_max_timestamp(TimestampType.CREATE_TIME, 1002)
    assert batch.checksum == before


def test_a_batch_over_read_only_bytes_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        RecordBatch(memoryview(bytes(made().view))).set_base_offset(1)


def test_a_changed_byte_is_noticed() -> None:
    batch = made()
    batch.view[-1] ^= 1
    assert not batch.is_valid
    with pytest.raises(CorruptRecordError, match="offset 10"):
        batch.ensure_valid()
    batch.update_checksum()
    batch.ensure_valid()


def test_sequences_count_on_and_wrap() -> None:
    batch = made(base_sequence=2**31 - 2, producer_id=4, producer_epoch=1)
    assert [record.sequence for record in batch.records()] == [2**31 - 2, 2**31 - 1, 0]
    assert batch.last_sequence == 0
    assert made().last_sequence == -1


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_an_unknown_codec_is_named(codec: int) -> None:
    view = made().view
    view[c.ATTRIBUTES_AT + 1] |= codec
    batch = RecordBatch(view)
    with pytest.raises(UnsupportedCompressionTypeError, match=str(codec)):
        list(batch.records())


def test_malformed_records_and_damaged_compression_are_told_apart() -> None:
    plain = made()
    plain.view[c.BATCH_OVERHEAD] = 0x03
    with pytest.raises(InvalidRecordError):
        list(plain.records())
    compressed = made(compression=CompressionType.GZIP)
    compressed.view[c.BATCH_OVERHEAD] = 0
    with pytest.raises(DecompressionError):
        list(compressed.records())


def test_decompression_has_the_limit_that_is_asked_for() -> None:
    batch = made(100, compression=CompressionType.LZ4)
    with pytest.raises(DecompressionError):
        list(batch.records(max_bytes=100))
    assert len(list(batch.records(max_bytes=10_000))) == 100
