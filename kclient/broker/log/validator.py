"""What a leader checks before it appends: that a batch is what its header says and what its topic allows.

Java reads every record of every batch. Here a batch's own header stands for its records wherever its checksum
makes that safe, and the records are only counted, by hopping from length to length; they are decoded if the
topic's settings ask something of each (keys for compaction, a lower limit of timestamps) or another codec.
"""

from __future__ import annotations

import struct

import attrs

from kclient._accel.varint import read_varint
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
"""What a batch may decompress to.

Consumers have the same limit by default, so nobody could read more anyway.
"""

_LONG_MAX = 2**63 - 1
_SHOWN_ERRORS = 3
# Zigzag of 6 bytes: attributes, two deltas, two sizes and the count of headers have at least one each.
_SMALLEST_RECORD = 12


@attrs.frozen
class ValidRecords:
    """Batches fit to be appended, and the buffer that they are views of, back to back."""

    data: memoryview
    batches: list[RecordBatch]


def validate_records(
    records: memoryview, config: LogConfig, origin: AppendOrigin, topic_partition: TopicPartition, now_ms: int
) -> ValidRecords:
    """Check batches that are about to be appended; bytes after the last whole batch are left out.

    `records` is writable: offsets and epochs are set in place later. Raises `CorruptRecordError`,
    `RecordTooLargeError`, `InvalidRecordError` and `InvalidTimestampError`, the last two with `record_errors`.
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
        if batch_size > config.max_message_bytes:
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
    latest_ms = now_ms + config.message_timestamp_after_max_ms
    check_each = config.compact or (
        stamped_by_producer
        and (batch.max_timestamp_ms > latest_ms or config.message_timestamp_before_max_ms != _LONG_MAX)
    )
    if not check_each:
        _count_records(batch, topic_partition)
        return
    earliest_ms = now_ms - config.message_timestamp_before_max_ms
    errors: list[tuple[int, str]] = []
    bad_timestamp = False
    index = -1
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
    if index + 1 != batch.count:
        raise InvalidRecordError(
            f"{topic_partition}: a batch of {batch.count} records holds {index + 1} records"
        )
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


def _count_records(batch: RecordBatch, topic_partition: TopicPartition) -> None:
    """Check that the batch's records, one after the other, fill it exactly."""
    count = left = batch.count
    codec = batch.compression_type
    payload = batch.payload
    # Indexing bytes is so much faster than a memoryview that the copy pays from the third record on.
    body = (
        bytes(payload)
        if codec is CompressionType.NONE
        else decompress(codec, payload, MAX_DECOMPRESSED_BYTES)
    )
    position = 0
    try:
        # Inline, for there may be thousands: a record's length is a zigzag varint, mostly of one or two
        # bytes. Odd values stand for negative lengths.
        while left:
            length = body[position]
            position += 1
            if length >= 0x80:
                more = body[position]
                position += 1
                length = length & 0x7F | (more & 0x7F) << 7
                if more >= 0x80:
                    length, position = read_varint(body, position, length, 14)
            if length & 1 or length < _SMALLEST_RECORD:
                raise InvalidRecordError(f"{topic_partition}: a record is shorter than its own fields")
            position += length >> 1
            left -= 1
    except IndexError as error:
        raise InvalidRecordError(
            f"{topic_partition}: a batch of {count} records holds {count - left}"
        ) from error
    except ValueError as error:
        raise InvalidRecordError(f"{topic_partition}: a record has no valid length: {error}") from error
    if position != len(body):
        raise InvalidRecordError(f"{topic_partition}: the records of a batch do not fill it exactly")


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
