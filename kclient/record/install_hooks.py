"""Functions and errors that the hot path needs, installed in its hooks when `kclient.record` is imported."""

from __future__ import annotations

from collections.abc import Iterator

from kclient._accel import hooks
from kclient.common.topic_partition import TopicPartition
from kclient.compress import CompressionType, decompress_partly
from kclient.errors import (
    CorruptRecordError,
    ForkedClientError,
    IllegalStateError,
    InvalidRecordError,
    KafkaError,
    KafkaTimeoutError,
    RecordDeserializationError,
)
from kclient.record.record import Headers


def _decompress(codec: int, data: memoryview, max_bytes: int) -> tuple[bytes, BaseException | None]:
    return decompress_partly(CompressionType.for_id(codec), data, max_bytes)


def _read_legacy(
    view: memoryview, check_crc: bool, max_bytes: int
) -> Iterator[tuple[int, int, int, bytes | None, bytes | None]]:
    # Here, as few logs are that old.
    from kclient.record.legacy import LegacyBatch

    batch = LegacyBatch(view)
    if check_crc:
        batch.ensure_valid()
    for record in batch.records(max_bytes, check_crc):
        yield record.offset, record.timestamp_ms, int(record.timestamp_type), record.key, record.value


def _undecodable(
    topic: str,
    partition: int,
    offset: int,
    which: str,
    timestamp_ms: int,
    timestamp_type: int,
    key: bytes | None,
    value: bytes | None,
    headers: Headers,
) -> BaseException:
    return RecordDeserializationError(
        f"The {which} of the record at offset {offset} of {topic}-{partition} cannot be deserialized; "
        "seek past it to leave it out.",
        topic_partition=TopicPartition(topic, partition),
        offset=offset,
        which=which,
        key=key,
        value=value,
        headers=headers,
        timestamp_ms=timestamp_ms,
        timestamp_type=timestamp_type,
    )


def install_hooks() -> None:
    """Give the hot path the codecs, the old formats and Kafka's errors."""
    hooks.decompress = _decompress
    hooks.read_legacy = _read_legacy
    hooks.corrupt_error = CorruptRecordError
    hooks.data_errors = (*hooks.data_errors, KafkaError)
    hooks.invalid_error = InvalidRecordError
    hooks.undecodable_error = _undecodable
    hooks.forked_error = ForkedClientError
    hooks.interrupting_error = IllegalStateError
    hooks.timeout_error = KafkaTimeoutError
