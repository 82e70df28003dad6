"""A batch of magic 2, seen through its bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from kclient._accel import crc32c, decode_records, zigzag_size
from kclient.compress import CompressionType, decompress_partly
from kclient.errors import CorruptRecordError, InvalidRecordError
from kclient.record import constants as c
from kclient.record.record import Record, TimestampType, increment_sequence

_I16 = struct.Struct(">h")
_I32 = struct.Struct(">i")
_U32 = struct.Struct(">I")
_I64 = struct.Struct(">q")


class RecordBatch:
    """A batch of magic 2 over `view`, which begins with the batch and may go on after it.

    Nothing is copied but the numbers of the header, which are read once; the setters write through to the bytes, which
    must be writable for them. Who changes the bytes in another way needs another RecordBatch to see it. As safe to
    share between threads as the bytes are. The constructor raises CorruptRecordError if there is no room for the batch.
    """

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp_ms",
        "checksum",
        "count",
        "last_offset_delta",
        "magic",
        "max_timestamp_ms",
        "partition_leader_epoch",
        "producer_epoch",
        "producer_id",
        "view",
    )

    base_offset: int
    """Offset of the first record, also if compaction removed it. This and what follows: to be read, not to be set."""
    partition_leader_epoch: int
    """Epoch of the leader that appended the batch, -1 for none."""
    magic: int
    """2."""
    checksum: int
    """The CRC-32C that the batch carries."""
    attributes: int
    """The attribute bits, as a signed 16-bit integer."""
    last_offset_delta: int
    """The last offset, relative to the base offset."""
    base_timestamp_ms: int
    """The time that the records' timestamps are relative to."""
    max_timestamp_ms: int
    """The largest timestamp; with LOG_APPEND_TIME that of all records."""
    producer_id: int
    """Id of the idempotent producer, -1 for none."""
    producer_epoch: int
    """Epoch of the producer id, -1 for none."""
    base_sequence: int
    """Sequence number of the first record, -1 for none."""
    count: int
    """The number of records that the header claims."""

    def __init__(self, view: memoryview) -> None:
        if len(view) < c.BATCH_OVERHEAD:
            raise CorruptRecordError(f"{len(view)} bytes are too few for the header of a batch.")
        (
            self.base_offset,
            length,
            self.partition_leader_epoch,
            self.magic,
            self.checksum,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp_ms,
            self.max_timestamp_ms,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.count,
        ) = c.HEADER.unpack_from(view)
        size = c.LOG_OVERHEAD + length
        if not c.BATCH_OVERHEAD <= size <= len(view):
            raise CorruptRecordError(
                f"A batch says that it has {size} bytes, which cannot be: there are {len(view)}."
            )
        self.view = view[:size]

    @property
    def size_in_bytes(self) -> int:
        """Size of the whole batch."""
        return len(self.view)

    @property
    def last_offset(self) -> int:
        """Offset of the last record, also if compaction removed it."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The offset after the last."""
        return self.last_offset + 1

    @property
    def is_valid(self) -> bool:
        """True if the checksum is that of the bytes."""
        return self.checksum == crc32c(self.view[c.ATTRIBUTES_AT :])

    @property
    def compression_type(self) -> CompressionType:
        """The codec. Raises UnsupportedCompressionTypeError for an unknown one."""
        return CompressionType.for_id(self.attributes & c.CODEC_MASK)

    @property
    def timestamp_type(self) -> TimestampType:
        """The type of the timestamps: given by the producer or by the broker."""
        return TimestampType(self.attributes >> 3 & 1)

    @property
    def is_transactional(self) -> bool:
        """True if the records belong to a transaction."""
        return bool(self.attributes & c.TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        """True if the records are markers and not data."""
        return bool(self.attributes & c.CONTROL_BIT)

    @property
    def delete_horizon_ms(self) -> int | None:
        """The time from which tombstones in the batch may be removed; None if that is not decided."""
        return self.base_timestamp_ms if self.attributes & c.DELETE_HORIZON_BIT else None

    @property
    def last_sequence(self) -> int:
        """Sequence number of the last record, -1 for none."""
        base = self.base_sequence
        return c.NO_SEQUENCE if base == c.NO_SEQUENCE else increment_sequence(base, self.last_offset_delta)

    @property
    def payload(self) -> memoryview:
        """The records, as compressed as they are."""
        return self.view[c.BATCH_OVERHEAD :]

    def ensure_valid(self) -> None:
        """Raise CorruptRecordError unless the checksum is right."""
        if not self.is_valid:
            raise CorruptRecordError(
                f"The batch at offset {self.base_offset} carries the checksum {self.checksum}, "
                f"its bytes have {crc32c(self.view[c.ATTRIBUTES_AT :])}."
            )

    def records(self, max_bytes: int = c.DEFAULT_DECOMPRESS_MAX_BYTES) -> Iterator[Record]:
        """The records, decompressed to at most `max_bytes`.

        Raises, in place of the first record that cannot be read, InvalidRecordError for malformed records,
        DecompressionError for damage of the compression and UnsupportedCompressionTypeError for an unknown codec.
        """
        if not self.count:
            return
        codec = self.compression_type
        if codec is CompressionType.NONE:
            data, error = bytes(self.payload), None
        else:
            data, error = decompress_partly(codec, self.payload, max_bytes)
        base_offset = self.base_offset
        base_ts = self.base_timestamp_ms
        base_sequence = self.base_sequence
        kind = self.timestamp_type
        append_ts = self.max_timestamp_ms if kind is TimestampType.LOG_APPEND_TIME else None
        try:
            for size, ts_delta, delta, key, value, headers in decode_records(data, self.count, error):
                yield Record(
                    base_offset + delta,
                    base_ts + ts_delta if append_ts is None else append_ts,
                    kind,
                    key,
                    value,
                    headers,
                    increment_sequence(base_sequence, delta) if base_sequence >= 0 else c.NO_SEQUENCE,
                    zigzag_size(size) + size,
                )
        except ValueError as cause:
            raise InvalidRecordError(f"The batch at offset {base_offset} is malformed: {cause}.") from cause

    def set_base_offset(self, offset: int) -> None:
        """Move the batch in the log; outside the checksum."""
        _I64.pack_into(self.view, 0, offset)
        self.base_offset = offset

    def set_partition_leader_epoch(self, epoch: int) -> None:
        """Say which leader appends the batch; outside the checksum."""
        _I32.pack_into(self.view, c.LEADER_EPOCH_AT, epoch)
        self.partition_leader_epoch = epoch

    def set_max_timestamp(self, kind: TimestampType, timestamp_ms: int) -> None:
        """Set kind and largest value of the timestamps, and the checksum if that changes anything."""
        attributes = self.attributes & ~c.LOG_APPEND_TIME_BIT
        if kind is TimestampType.LOG_APPEND_TIME:
            attributes |= c.LOG_APPEND_TIME_BIT
        if attributes == self.attributes and timestamp_ms == self.max_timestamp_ms:
            return
        _I16.pack_into(self.view, c.ATTRIBUTES_AT, attributes)
        _I64.pack_into(self.view, c.MAX_TIMESTAMP_AT, timestamp_ms)
        self.attributes, self.max_timestamp_ms = attributes, timestamp_ms
        self.update_checksum()

    def set_log_append_time(self, timestamp_ms: int) -> None:
        """Give all records the time at which the broker appends them, and the batch its new checksum."""
        self.set_max_timestamp(TimestampType.LOG_APPEND_TIME, timestamp_ms)

    def update_checksum(self) -> None:
        """Set the checksum to that of the bytes."""
        checksum = crc32c(self.view[c.ATTRIBUTES_AT :])
        _U32.pack_into(self.view, c.CRC_AT, checksum)
        self.checksum = checksum

    def __repr__(self) -> str:
        return f"RecordBatch(offsets {self.base_offset} to {self.last_offset}, {self.size_in_bytes} bytes)"
