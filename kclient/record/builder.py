"""Batches of any magic, written record by record."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from kclient._accel import crc32c, encode_record
from kclient.compress import CompressionType, compress
from kclient.record import constants as c
from kclient.record import legacy
from kclient.record.record import TimestampType


@attrs.define(kw_only=True, eq=False, repr=False)
class MemoryRecordsBuilder:
    """Builds one batch of magic 2, or one compressed or many plain messages of magic 0 and 1.

    For brokers, tools and tests; producers build theirs with `kclient._accel.BatchBuilder`. Belongs to one thread.
    """

    _magic: int = c.MAGIC_2
    _compression: CompressionType = CompressionType.NONE
    _level: int | None = None
    _timestamp_type: TimestampType = TimestampType.CREATE_TIME
    _base_offset: int = 0
    _log_append_time_ms: int = c.NO_TIMESTAMP
    _producer_id: int = c.NO_PRODUCER_ID
    _producer_epoch: int = c.NO_PRODUCER_EPOCH
    _base_sequence: int = c.NO_SEQUENCE
    _is_transactional: bool = False
    _is_control: bool = False
    _partition_leader_epoch: int = c.NO_LEADER_EPOCH
    _delete_horizon_ms: int | None = None
    _body: bytearray = attrs.field(factory=bytearray, init=False)
    _count: int = attrs.field(default=0, init=False)
    _last_offset: int = attrs.field(init=False)
    _base_ts: int = attrs.field(init=False)
    _max_ts: int = attrs.field(default=c.NO_TIMESTAMP, init=False)

    def __attrs_post_init__(self) -> None:
        magic = self._magic
        if not c.MAGIC_0 <= magic <= c.MAGIC_2:
            raise ValueError(f"magic must be 0, 1 or 2, not {magic}")
        if magic > c.MAGIC_0 and self._timestamp_type is TimestampType.NO_TIMESTAMP_TYPE:
            raise ValueError(
                f"batches of magic {magic} have timestamps: timestamp_type must say of which kind"
            )
        if magic < c.MAGIC_2:
            if self._is_transactional or self._is_control or self._delete_horizon_ms is not None:
                raise ValueError(f"batches of magic {magic} have neither transactions nor delete horizons")
            if self._compression is CompressionType.ZSTD:
                raise ValueError(f"batches of magic {magic} cannot be compressed with zstd")
        self._last_offset = self._base_offset - 1
        self._base_ts = c.NO_TIMESTAMP if self._delete_horizon_ms is None else self._delete_horizon_ms

    @property
    def count(self) -> int:
        """The number of records in it."""
        return self._count

    @property
    def next_offset(self) -> int:
        """The offset that a record without one will get."""
        return self._last_offset + 1

    @property
    def uncompressed_size(self) -> int:
        """Bytes of the whole batch as it is now, uncompressed."""
        return len(self._body) + (c.BATCH_OVERHEAD if self._magic == c.MAGIC_2 else 0)

    def append(
        self,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        *,
        offset: int | None = None,
    ) -> None:
        """Add a record, at `offset` or behind the last. Raises ValueError for an offset that goes back."""
        if offset is None:
            offset = self._last_offset + 1
        elif offset <= self._last_offset and self._count:
            raise ValueError(f"offset {offset} does not come after {self._last_offset}")
        if self._magic == c.MAGIC_2:
            if not self._count and self._delete_horizon_ms is None:
                self._base_ts = timestamp_ms
            delta = offset - self._base_offset
            self._body += encode_record(timestamp_ms - self._base_ts, delta, key, value, headers)
        else:
            if headers:
                raise ValueError(f"batches of magic {self._magic} have no headers")
            self._append_message(offset, timestamp_ms, key, value)
        self._count += 1
        self._last_offset = offset
        self._max_ts = max(self._max_ts, timestamp_ms)

    def _append_message(self, offset: int, timestamp_ms: int, key: bytes | None, value: bytes | None) -> None:
        relative = self._magic == c.MAGIC_1 and self._compression is not CompressionType.NONE
        if self._timestamp_type is TimestampType.LOG_APPEND_TIME:
            timestamp_ms = self._log_append_time_ms
        self._body += legacy.message(
            self._magic,
            offset - self._base_offset if relative else offset,
            timestamp_ms,
            key,
            value,
            timestamp_type=self._timestamp_type,
        )

    def close(self, last_offset: int | None = None) -> bytes:
        """The finished bytes, empty without records; `last_offset` is claimed instead of the last record's."""
        if not self._count:
            return b""
        if last_offset is None:
            last_offset = self._last_offset
        by_broker = self._timestamp_type is TimestampType.LOG_APPEND_TIME
        max_ts = self._log_append_time_ms if by_broker else self._max_ts
        if self._magic == c.MAGIC_2:
            payload = compress(self._compression, self._body, self._level)
            return self._header(payload, last_offset, max_ts, self._count) + payload
        if self._compression is CompressionType.NONE:
            return bytes(self._body)
        payload = compress(self._compression, self._body, self._level, self._magic)
        return legacy.message(
            self._magic, last_offset, max_ts, None, payload, self._compression, self._timestamp_type
        )

    def empty_batch(self, last_offset: int, max_timestamp_ms: int) -> bytes:
        """A header without records, which keeps offsets and a producer's state when compaction removed the rest."""
        if self._magic != c.MAGIC_2 or self._count:
            raise ValueError("only a batch of magic 2 without records can be written empty")
        return self._header(b"", last_offset, max_timestamp_ms, 0)

    def _header(self, payload: bytes, last_offset: int, max_ts: int, count: int) -> bytes:
        attributes = int(self._compression) if count else 0
        if self._timestamp_type is TimestampType.LOG_APPEND_TIME:
            attributes |= c.LOG_APPEND_TIME_BIT
        if self._is_transactional:
            attributes |= c.TRANSACTIONAL_BIT
        if self._is_control:
            attributes |= c.CONTROL_BIT
        if self._delete_horizon_ms is not None:
            attributes |= c.DELETE_HORIZON_BIT
        covered = c.COVERED.pack(
            attributes,
            last_offset - self._base_offset,
            self._base_ts,
            max_ts,
            self._producer_id,
            self._producer_epoch,
            self._base_sequence,
            count,
        )
        length = c.BATCH_OVERHEAD - c.LOG_OVERHEAD + len(payload)
        crc = crc32c(payload, crc32c(covered))
        return (
            c.PREFIX.pack(self._base_offset, length, self._partition_leader_epoch, self._magic, crc) + covered
        )
