"""Codecs, old formats and Kafka's errors, as the hot path finds them in its hooks."""

from __future__ import annotations

import pytest

import kclient.record  # noqa: F401 - it installs the hooks
from kclient._accel import hooks
from kclient.common.topic_partition import TopicPartition
from kclient.compress import CompressionType, DecompressionLimitError, compress
from kclient.errors import (
    CorruptRecordError,
    ForkedClientError,
    IllegalStateError,
    InvalidRecordError,
    KafkaError,
    KafkaTimeoutError,
    RecordDeserializationError,
    UnsupportedCompressionTypeError,
)
from kclient.record.legacy import message


@pytest.mark.parametrize("codec", CompressionType)
def test_data_is_decompressed_by_the_number_of_its_codec(codec: CompressionType) -> None:
    data = memoryview(compress(codec, b"some data"))
    assert hooks.decompress(codec.value, data, 100) == (b"some data", None)


def test_data_beyond_the_limit_comes_with_the_error_that_says_so() -> None:
    data = memoryview(compress(CompressionType.GZIP, bytes(1000)))
    found, error = hooks.decompress(CompressionType.GZIP.value, data, 999)
    assert len(found) <= 999
    assert isinstance(error, DecompressionLimitError)


@pytest.mark.parametrize("number", [5, 6, 7])
def test_a_codec_that_nobody_knows_is_an_error_of_kafkas(number: int) -> None:
    with pytest.raises(UnsupportedCompressionTypeError, match=str(number)):
        hooks.decompress(number, memoryview(b"x"), 100)


def test_a_message_of_an_old_format_is_read_as_plain_fields() -> None:
    [created] = hooks.read_legacy(memoryview(message(1, 5, 1000, b"k", None)), True, 100)
    assert created == (5, 1000, 0, b"k", None)
    [untimed] = hooks.read_legacy(memoryview(message(0, 6, 1000, None, b"v")), True, 100)
    assert untimed == (6, -1, -1, None, b"v")


@pytest.mark.parametrize("compressed", [False, True], ids=["a message", "one inside another"])
def test_a_damaged_message_of_an_old_format_is_noticed_where_checksums_are_checked(compressed: bool) -> None:
    damaged = bytearray(message(1, 5, 1000, b"k", b"v"))
    damaged[-1] ^= 1
    if compressed:
        damaged = bytearray(
            message(
                1,
                5,
                1000,
                None,
                compress(CompressionType.GZIP, bytes(damaged), magic=1),
                CompressionType.GZIP,
            )
        )
    with pytest.raises(CorruptRecordError):
        list(hooks.read_legacy(memoryview(damaged), True, 1000))
    [record] = hooks.read_legacy(memoryview(damaged), False, 1000)
    assert record[4] == b"w"


def test_messages_inside_another_are_decompressed_to_the_limit_at_most() -> None:
    inner = compress(CompressionType.GZIP, message(1, 0, 1, None, bytes(1000)), magic=1)
    batch = memoryview(message(1, 0, 1, None, inner, CompressionType.GZIP))
    assert len(list(hooks.read_legacy(batch, True, 2000))) == 1
    with pytest.raises(DecompressionLimitError):
        list(hooks.read_legacy(batch, True, 500))


def test_a_record_that_cannot_be_deserialized_is_told_with_all_that_a_dead_letter_queue_needs() -> None:
    error = hooks.undecodable_error("t", 3, 7, "key", 1000, 1, b"k", b"v", (("h", None),))
    assert isinstance(error, RecordDeserializationError)
    assert "The key of the record at offset 7 of t-3" in str(error)
    assert vars(error) == {
        "topic_partition": TopicPartition("t", 3),
        "offset": 7,
        "which": "key",
        "key": b"k",
        "value": b"v",
        "headers": (("h", None),),
        "timestamp_ms": 1000,
        "timestamp_type": 1,
    }


def test_the_hot_path_raises_kafkas_errors() -> None:
    assert type(hooks.corrupt_error("x")) is CorruptRecordError
    assert type(hooks.invalid_error("x")) is InvalidRecordError
    assert type(hooks.forked_error("x")) is ForkedClientError
    assert type(hooks.interrupting_error("x")) is IllegalStateError
    assert type(hooks.timeout_error("x")) is KafkaTimeoutError


def test_errors_of_kafkas_can_come_from_the_data_as_builtin_ones_can() -> None:
    assert issubclass(CorruptRecordError, hooks.data_errors)
    assert issubclass(KafkaError, hooks.data_errors)
    assert issubclass(ValueError, hooks.data_errors)
    assert not issubclass(KeyboardInterrupt, hooks.data_errors)
