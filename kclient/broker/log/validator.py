"""Checks of a leader before it appends: a batch must be what its header says and what its topic allows.

As in Java every record of every batch is looked at, but where it lies: records are made of them only if the
topic's settings ask something of each (keys for compaction, limits of timestamps). What the header says of its
records' timestamps is not believed: retention and lookups by time go by it.
"""

from __future__ import annotations

import struct

import attrs

from kclient._accel import largest_timestamp
from kclient.broker.log.config import CREATE_TIME, PRODUCER_COMPRESSION, LogConfig
from kclient.broker.log.producer_state import NO_PRODUCER_ID, AppendOrigin
from kclient.common.topic_partition import TopicPartition
from kclient.compress import CompressionType, compress, decompress
from kclient.errors import (
    CorruptRecordError,
    InvalidRecordError,
    InvalidTimestampError,
    RecordTooLargeError,
)
from kclient.record import constants as c
from kclient.record.batch import RecordBatch
from kclient.record.memory_records import iter_batches
from kclient.record.record import Record, TimestampType

MAX_DECOMPRESSED_BYTES = c.DEFAULT_DECOMPRESS_MAX_BYTES
"""The most bytes that a batch may decompress to.

Consumers have the same limit by default, so nobody could read more anyway.
"""

_LONG_MAX = 2**63 - 1
_SHOWN_ERRORS = 3


@attrs.frozen
class ValidRecords:
    """Batches fit to be appended, and the buffer that they are views of, back to back."""

    data: memoryview
    batches: list[RecordBatch]


def validate_records(
    records: memoryview, config: LogConfig, origin: AppendOrigin, topic_partition: TopicPartition, now_ms: int
) -> ValidRecords:
    """Check batches that are about to be appended; bytes after the last whole batch are left out.

    `records` is writable, as offsets and epochs are set in place later, unless they come from a leader. Raises
    `CorruptRecordError`, `RecordTooLargeError`, `InvalidRecordError` and `InvalidTimestampError`, the last two with
    `record_errors`.
    """
    batches: list[RecordBatch] = []
    size = 0
    for batch in iter_batches(records):
        if not isinstance(batch, RecordBatch):
            raise InvalidRecordError(
                f"{topic_partition}: batches must have magic {c.MAGIC_2}, not {batch.magic}; use a newer producer"
            )
        if origin is AppendOrigin.CLIENT:
            if batches:
                raise InvalidRecordError(
                    f"{topic_partition}: a produce request may carry one batch, not more"
                )
            if batch.base_offset != 0:
                raise InvalidRecordError(
                    f"{topic_partition}: the base offset of a batch to append must be 0, not {batch.base_offset}"
                )
        batch_size = batch.size_in_bytes
        # A leader may have had another limit when it took the batch.
        if batch_size > config.max_message_bytes and origin is not AppendOrigin.REPLICATION:
            raise RecordTooLargeError(
                f"{topic_partition}: a batch of {batch_size} bytes is larger than "
                f"max.message.bytes ({config.max_message_bytes})"
            )
        if not batch.is_valid:
            raise CorruptRecordError(f"{topic_partition}: a batch does not match its checksum")
        batches.append(batch)
        size += batch_size
    if not batches:
        raise CorruptRecordError(f"{topic_partition}: {len(records)} bytes hold no whole batch")
    if origin is AppendOrigin.REPLICATION:
        return ValidRecords(records[:size], batches)
    for batch in batches:
        _check_header(batch, origin, topic_partition)
        if not batch.is_control:
            _check_records(batch, config, topic_partition, now_ms)
    target = _target_codec(config)
    if target is None or all(batch.is_control or batch.compression_type == target for batch in batches):
        return ValidRecords(records[:size], batches)
    return _recompress(batches, target, config)


def _check_header(batch: RecordBatch, origin: AppendOrigin, topic_partition: TopicPartition) -> None:
    count = batch.count
    if count <= 0 or batch.last_offset_delta + 1 != count:
        raise InvalidRecordError(
            f"{topic_partition}: a batch of {count} records cannot have the last offset delta {batch.last_offset_delta}"
        )
    if batch.timestamp_type is TimestampType.LOG_APPEND_TIME:
        raise InvalidTimestampError(
            f"{topic_partition}: producers must not set the timestamp type to LogAppendTime"
        )
    if origin is AppendOrigin.CLIENT and batch.is_control:
        raise InvalidRecordError(f"{topic_partition}: clients may not write control records")
    if batch.producer_id != NO_PRODUCER_ID and batch.base_sequence < 0 and not batch.is_control:
        raise InvalidRecordError(
            f"{topic_partition}: sequence {batch.base_sequence} of producer {batch.producer_id} is negative"
        )


def _check_records(
    batch: RecordBatch, config: LogConfig, topic_partition: TopicPartition, now_ms: int
) -> None:
    stamped_by_producer = config.message_timestamp_type == CREATE_TIME
    largest_ms = _largest_timestamp(batch, topic_partition)
    if stamped_by_producer:
        batch.set_max_timestamp(TimestampType.CREATE_TIME, largest_ms)
    latest_ms = now_ms + config.message_timestamp_after_max_ms
    check_each = config.compact or (
        stamped_by_producer
        and (largest_ms > latest_ms or config.message_timestamp_before_max_ms != _LONG_MAX)
    )
    if not check_each:
        return
    earliest_ms = now_ms - config.message_timestamp_before_max_ms
    errors: list[tuple[int, str]] = []
    bad_timestamp = False
    for index, record in enumerate(batch.records(max_bytes=MAX_DECOMPRESSED_BYTES)):
        if config.compact and record.key is None:
            errors.append((index, f"Compacted topic cannot accept message without key in {topic_partition}."))
        elif stamped_by_producer and _is_out_of_range(record, earliest_ms, latest_ms):
            bad_timestamp = True
            allowed = f"[{earliest_ms}, {latest_ms}]"
            message = (
                f"Timestamp {record.timestamp_ms} of message with index {index} is not within {allowed}."
            )
            errors.append((index, message))
    if not errors:
        return
    if bad_timestamp:
        raise InvalidTimestampError(
            f"{topic_partition}: {len(errors)} records were rejected, at least one for its timestamp",
            record_errors=errors,
        )
    shown = "; ".join(message for _, message in errors[:_SHOWN_ERRORS])
    raise InvalidRecordError(
        f"{topic_partition}: {len(errors)} records were rejected: {shown}", record_errors=errors
    )


def _is_out_of_range(record: Record, earliest_ms: int, latest_ms: int) -> bool:
    timestamp_ms = record.timestamp_ms
    return timestamp_ms != c.NO_TIMESTAMP and not earliest_ms <= timestamp_ms <= latest_ms


def _largest_timestamp(batch: RecordBatch, topic_partition: TopicPartition) -> int:
    codec, payload = batch.compression_type, batch.payload
    body = payload if codec is CompressionType.NONE else decompress(codec, payload, MAX_DECOMPRESSED_BYTES)
    try:
        return largest_timestamp(body, batch.count, batch.base_timestamp_ms)
    except ValueError as error:
        raise InvalidRecordError(
            f"{topic_partition}: the records of a batch are malformed: {error}"
        ) from error


def _target_codec(config: LogConfig) -> CompressionType | None:
    if config.compression_type == PRODUCER_COMPRESSION:
        return None
    name = config.compression_type
    return CompressionType.NONE if name == "uncompressed" else CompressionType.for_name(name)


def _level(config: LogConfig, codec: CompressionType) -> int | None:
    return {
        CompressionType.GZIP: config.compression_gzip_level,
        CompressionType.LZ4: config.compression_lz4_level,
        CompressionType.ZSTD: config.compression_zstd_level,
    }.get(codec)


def _recompress(batches: list[RecordBatch], target: CompressionType, config: LogConfig) -> ValidRecords:
    """The same batches in the topic's codec: only the payload changes, so no record is decoded."""
    parts: list[bytes | bytearray | memoryview] = []
    for batch in batches:
        if batch.is_control or batch.compression_type is target:
            parts.append(batch.view)
            continue
        plain = decompress(batch.compression_type, batch.payload, MAX_DECOMPRESSED_BYTES)
        payload = compress(target, plain, _level(config, target))
        made = bytearray(batch.view[: c.BATCH_OVERHEAD]) + payload
        attributes = (batch.attributes & ~c.CODEC_MASK) | target
        struct.pack_into(">i", made, c.LENGTH_AT, len(made) - c.LOG_OVERHEAD)
        struct.pack_into(">h", made, c.ATTRIBUTES_AT, attributes)
        RecordBatch(memoryview(made)).update_checksum()
        parts.append(made)
    data = memoryview(bytearray(b"".join(parts)))
    return ValidRecords(data, [batch for batch in iter_batches(data) if isinstance(batch, RecordBatch)])
