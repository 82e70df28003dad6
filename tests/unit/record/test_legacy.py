"""Messages of magic 0 and 1."""

from __future__ import annotations

import pytest

from kclient.compress import CompressionType, DecompressionError, compress
from kclient.errors import CorruptRecordError, InvalidRecordError
from kclient.record import LegacyBatch, TimestampType
from kclient.record.legacy import message

GZIP = CompressionType.GZIP


def wrapper(
    inner: bytes, *, magic: int = 1, offset: int = 9, kind: TimestampType = TimestampType.CREATE_TIME
) -> LegacyBatch:
    payload = compress(GZIP, inner, magic=magic)
    return LegacyBatch(memoryview(message(magic, offset, 7777, None, payload, GZIP, kind)))


def test_a_plain_message_is_a_batch_of_one() -> None:
    batch = LegacyBatch(memoryview(message(1, 5, 1000, b"k", None) + b"more"))
    batch.ensure_valid()
    [record] = batch.records()
    assert (record.offset, record.timestamp_ms, record.key, record.value) == (5, 1000, b"k", None)
    assert (batch.base_offset, batch.last_offset, batch.next_offset) == (5, 5, 6)
    assert record.size_in_bytes == batch.size_in_bytes


def test_magic_0_has_no_time() -> None:
    batch = LegacyBatch(memoryview(message(0, 5, 1000, b"k", b"v")))
    assert batch.timestamp_type is TimestampType.NO_TIMESTAMP_TYPE
    assert [record.timestamp_ms for record in batch.records()] == [-1]


def test_inner_offsets_of_magic_1_end_at_the_outer_one() -> None:
    inner = message(1, 0, 1, None, b"a") + message(1, 3, 2, None, b"b")
    assert [(r.offset, r.timestamp_ms) for r in wrapper(inner).records()] == [(6, 1), (9, 2)]


def test_an_outer_offset_of_0_as_librdkafka_wrote_it_is_no_outer_offset() -> None:
    inner = message(1, 0, 1, None, b"a") + message(1, 1, 2, None, b"b")
    assert [record.offset for record in wrapper(inner, offset=0).records()] == [0, 1]


def test_inner_offsets_of_magic_0_are_absolute() -> None:
    inner = message(0, 41, 1, None, b"a") + message(0, 42, 2, None, b"b")
    assert [record.offset for record in wrapper(inner, magic=0, offset=42).records()] == [41, 42]


def test_the_brokers_time_is_that_of_all_inner_messages() -> None:
    batch = wrapper(message(1, 0, 1, None, b"a"), kind=TimestampType.LOG_APPEND_TIME)
    [record] = batch.records()
    assert (record.timestamp_ms, record.timestamp_type) == (7777, TimestampType.LOG_APPEND_TIME)


@pytest.mark.parametrize(
    "inner",
    [
        b"",
        message(1, 99, 1, None, b"beyond the outer offset"),
        message(0, 0, 1, None, b"another magic"),
        message(1, 0, 1, None, compress(GZIP, message(1, 0, 1, None, b"a")), GZIP),
    ],
    ids=["nothing", "beyond", "other magic", "compressed twice"],
)
def test_what_may_not_be_inside_a_compressed_message_is_refused(inner: bytes) -> None:
    with pytest.raises(InvalidRecordError, match="offset 9"):
        list(wrapper(inner).records())


def test_an_inner_message_of_impossible_size_is_corrupt() -> None:
    with pytest.raises(CorruptRecordError):
        list(wrapper(bytes(40)).records())


def test_a_compressed_message_needs_a_value_and_a_codec_of_its_time() -> None:
    with pytest.raises(InvalidRecordError, match="no value"):
        list(LegacyBatch(memoryview(message(1, 0, 1, None, None, GZIP))).records())
    with pytest.raises(InvalidRecordError, match="zstd"):
        list(LegacyBatch(memoryview(message(1, 0, 1, None, b"", CompressionType.ZSTD))).records())
    with pytest.raises(DecompressionError):
        list(LegacyBatch(memoryview(message(1, 0, 1, None, b"not gzip", GZIP))).records())


def test_inner_checksums_are_looked_at_when_asked() -> None:
    inner = bytearray(message(1, 0, 1, None, b"abc"))
    inner[-1] ^= 1
    batch = wrapper(bytes(inner))
    assert len(list(batch.records())) == 1
    with pytest.raises(CorruptRecordError):
        list(batch.records(check_crc=True))


def test_sizes_that_go_beyond_the_message_are_refused() -> None:
    data = bytearray(message(1, 0, 1, b"key", b"value"))
    data[26:30] = (1000).to_bytes(4, "big")
    with pytest.raises(InvalidRecordError):
        list(LegacyBatch(memoryview(data)).records())
    short = message(1, 0, 1, None, None)[:26]
    short = short[:8] + (14).to_bytes(4, "big") + short[12:]
    with pytest.raises(InvalidRecordError):
        list(LegacyBatch(memoryview(short)).records())


@pytest.mark.parametrize("size", [0, 16, 25])
def test_there_must_be_room_for_all_of_it(size: int) -> None:
    with pytest.raises(CorruptRecordError):
        LegacyBatch(memoryview(message(1, 0, 1, b"key", b"value"))[:size])
