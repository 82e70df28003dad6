"""A batch of magic 2 under construction."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kclient._accel.reference.future import Future
from kclient._accel.reference.gil import yield_gil
from kclient._accel.reference.hashing import crc32c
from kclient._accel.shared.batch_input import (
    MAX_RECORD_BYTES,
    MAX_TIMESTAMP_MS,
    Column,
    Row,
    check_content,
    check_headers,
    check_many,
    check_timestamp,
    checked_column,
    checked_timestamps,
    given_timestamp,
    rows,
    too_large,
    unfit,
)
from kclient._accel.shared.batch_result import BatchResult
from kclient._accel.shared.closed_batch import decompressed, records_of, spread
from kclient._accel.shared.hooks import hooks
from kclient._accel.shared.locks import holder_test, interrupting_text
from kclient._accel.shared.types import Buffer
from kclient._accel.shared.varint import zigzag

Headers = Sequence[tuple[str, bytes | None]]

HEADER_BYTES = 61
# Base offset, length, leader epoch, magic, CRC; then what the CRC covers: attributes, last offset delta, base and
# max timestamp, producer id, epoch, base sequence, count.
_PREFIX = struct.Struct(">qiibI")
_COVERED = struct.Struct(">hiqqqhii")

_NULL = zigzag(-1)
# The varints of one and two bytes, which is to say nearly all.
_SHORT = tuple(zigzag(n) for n in range(8192))
_FIRST_TWO_BYTES = 64
_FIRST_THREE_BYTES = 8192
_CODEC_BITS = 0x07
# What a record has besides key, value and headers, each part at its longest.
_LARGEST_FRAME = 32


def _varint(value: int) -> bytes:
    return _SHORT[value] if 0 <= value < _FIRST_THREE_BYTES else zigzag(value)


class BatchBuilder:
    """The records of one partition that will travel together.

    `limit` is the size in bytes, uncompressed and with the header, at which the batch is full; the first record always
    fits. `created_ms` is kept for whoever queues batches.

    Appending threads and the thread that closes may be different ones: `append`, `freeze` and `close` exclude each
    other. All else belongs to the thread that closes. The bytes of `views()` are never written to or reused: a
    request that still carries them sends what they were even if the batch is restamped or released meanwhile.
    They are in one piece, with room left in front for the header, so that a batch in flight is held only once.
    A batch that is closed compressed keeps no uncompressed bytes: whoever asks for its records has them decompressed.
    Wrong use raises ValueError.
    """

    __slots__ = (
        "_about",
        "_attributes",
        "_base_ts",
        "_buf",
        "_cached_end",
        "_cached_length",
        "_cached_ts",
        "_complete",
        "_is_held_here",
        "_lock",
        "_max_ts",
        "_prefix",
        "_suffix",
        "_uncompressed_size",
        "closed",
        "count",
        "created_ms",
        "limit",
        "partition",
        "result",
        "topic",
    )

    def __init__(self, topic: str, partition: int, limit: int, result: BatchResult, created_ms: int) -> None:
        self.topic = topic
        self.partition = partition
        self.limit = limit
        self.result = result
        self.created_ms = created_ms
        self.count = 0
        self.closed = False
        self._buf = bytearray(HEADER_BYTES)
        # Whether the header stands in front of the records.
        self._complete = False
        # Of a batch that has only the compressed form of its records; 0 for any other.
        self._uncompressed_size = 0
        self._attributes = 0
        self._base_ts = -1
        self._max_ts = -1
        # Records often come with the same timestamp and size, and then differ in their offset alone.
        self._cached_ts = self._cached_length = self._cached_end = -1
        self._prefix = self._suffix = b""
        self._about = (-1, -1, -1)
        self._lock = threading.RLock()
        self._is_held_here = holder_test(self._lock)

    def append(
        self,
        timestamp_ms: int | None,
        key: bytes | None,
        value: bytes | None,
        headers: Headers | None,
        callback: Callable[[Any, BaseException | None], object] | None = None,
    ) -> Future | None:
        """Add a record; None if it does not fit or the batch is closed, and then nothing has changed.

        `timestamp_ms` None means now. `callback(metadata, error)` runs when the record is acknowledged or has failed.
        Raises TypeError for what is not bytes, ValueError for a timestamp or a size that the format cannot hold (of the
        first thing that is wrong: timestamp, key, value, headers, what the batch's first timestamp rules out), and an
        error if it was called by what has interrupted this batch in the middle of a step.
        """
        if timestamp_ms is None:
            timestamp_ms = time.time_ns() // 1_000_000
            if timestamp_ms > self._max_ts and self.count:
                # Once per millisecond. The first record is added under a lock of the caller's, who does this later.
                yield_gil()
        elif type(timestamp_ms) is not int or not -1 <= timestamp_ms <= MAX_TIMESTAMP_MS:
            timestamp_ms = given_timestamp(timestamp_ms)
        if self._is_held_here():
            raise self._interrupting()
        with self._lock:
            if self.closed:
                return None
            index = self.count
            base_ts = self._base_ts if index else timestamp_ms
            if key is None and type(value) is bytes and not headers:
                value_size = len(value)
                if (
                    timestamp_ms != self._cached_ts
                    or value_size != self._cached_length
                    or index >= self._cached_end
                ):
                    self._cache_frame(timestamp_ms, base_ts, value_size, index)
                offset = _SHORT[index] if index < _FIRST_THREE_BYTES else zigzag(index)
                record = b"".join((self._prefix, offset, self._suffix, value, b"\0"))
                about = self._about
            else:
                check_content(key, "key")
                check_content(value, "value")
                if headers:
                    check_headers(headers)
                key_size = -1 if key is None else len(key)
                value_size = -1 if value is None else len(value)
                about = (timestamp_ms, key_size, value_size)
                record = _checked_record(timestamp_ms, base_ts, index, key, value, headers)
            if index and len(self._buf) + len(record) > self.limit:
                return None
            self._buf += record
            if not index:
                self._base_ts = self._max_ts = timestamp_ms
            elif timestamp_ms > self._max_ts:
                self._max_ts = timestamp_ms
            self.count = index + 1
            future = Future(self.result, index, about)
            # Under the lock: the batch cannot be closed, sent and complete before the callback is known.
            if callback is not None:
                self.result.add_callback(future, callback, True)
            return future

    def _cache_frame(self, timestamp_ms: int, base_ts: int, value_size: int, index: int) -> None:
        """Prepare what stands around the offset in records without key and headers, from `index` on."""
        check_timestamp(timestamp_ms, base_ts)
        if value_size > MAX_RECORD_BYTES - _LARGEST_FRAME:
            raise too_large()
        delta = zigzag(timestamp_ms - base_ts)
        size = _varint(value_size)
        offset_bytes = len(_varint(index))
        # Attributes, key and count of headers have one byte each.
        self._prefix = _varint(3 + len(delta) + offset_bytes + len(size) + value_size) + b"\0" + delta
        self._suffix = _NULL + size
        self._about = (timestamp_ms, -1, value_size)
        self._cached_ts = timestamp_ms
        self._cached_length = value_size
        self._cached_end = 1 << (7 * offset_bytes - 1)

    def append_many(
        self,
        timestamp_ms: int | None,
        keys: list[bytes | None] | tuple[bytes | None, ...] | None,
        values: list[bytes | None] | tuple[bytes | None, ...],
        start: int,
        stop: int,
    ) -> tuple[int, int]:
        """Add the records with `values[start:stop]`, and the `keys` beside them, until the batch is full.

        Returns the index of the first record in the batch, and how many were taken: none if the batch is full or
        closed. They have no futures; the batch's result tells what became of them. `timestamp_ms` None means now.

        What is wrong with the first one raises as in `append` (its index is named); what is wrong with a later one
        only ends the run before it, so that nothing is both taken and refused.
        """
        timestamp_ms = time.time_ns() // 1_000_000 if timestamp_ms is None else given_timestamp(timestamp_ms)
        check_many(keys, values, start, stop)
        if self.count:
            yield_gil()  # as in `append`

        def taken() -> Iterator[Row]:
            for i in range(start, stop):
                key = None if keys is None else keys[i]
                value = values[i]
                if type(value) is not bytes or key is not None:
                    check_content(key, f"keys[{i}]")
                    check_content(value, f"values[{i}]")
                yield timestamp_ms, key, value

        return self._append_rows(taken())

    def append_columns(
        self, timestamps: Buffer | None, keys: Column | None, values: Column | None, start: int, stop: int
    ) -> tuple[int, int]:
        """Add the records `start` to `stop` of columns, as `append_many` does.

        `timestamps` is a buffer of int64, None means now; a column that is None is null in every record. Raises
        TypeError for buffers of a wrong kind and ValueError for offsets that lie outside of the data.
        """
        if self.count:
            yield_gil()  # as in `append`
        times: memoryview | int
        if timestamps is None:
            times = time.time_ns() // 1_000_000
        else:
            times = checked_timestamps(timestamps, start, stop)
        key_column = None if keys is None else checked_column(keys, "keys", start, stop)
        value_column = None if values is None else checked_column(values, "values", start, stop)
        if timestamps is None and keys is None and values is None and not 0 <= start <= stop:
            raise ValueError(f"records {start} to {stop} were to be taken")
        return self._append_rows(rows(times, key_column, value_column, start, stop))

    def _append_rows(self, records: Iterator[Row]) -> tuple[int, int]:
        parts: list[bytes] = []
        if self._is_held_here():
            raise self._interrupting()
        with self._lock:
            first = index = self.count
            if self.closed:
                return first, 0
            base_ts, max_ts = self._base_ts, self._max_ts
            size = len(self._buf)
            try:
                for timestamp_ms, key, value in records:
                    if not index:
                        base_ts = max_ts = timestamp_ms
                    part = _checked_record(timestamp_ms, base_ts, index, key, value, None)
                    size += len(part)
                    if index and size > self.limit:
                        break
                    parts.append(part)
                    index += 1
                    max_ts = max(max_ts, timestamp_ms)
            except (TypeError, ValueError):
                if not parts:
                    raise
            # No call from here on: a Ctrl-C finds all of it done or nothing.
            joined = b"".join(parts)
            self._buf += joined
            self._base_ts = base_ts
            self._max_ts = max_ts
            self.count = index
            return first, index - first

    def _interrupting(self) -> BaseException:
        return hooks.interrupting_error(interrupting_text(f"The batch for {self.topic}-{self.partition}"))

    @property
    def entered(self) -> bool:
        """True if the calling thread is in a step here that others wait for: a signal handler has interrupted it."""
        return self._is_held_here()

    @property
    def size(self) -> int:
        """Bytes of the whole batch: with its records uncompressed until it is closed, as it travels afterwards."""
        return len(self._buf)

    @property
    def uncompressed_size(self) -> int:
        """Bytes of the whole batch with its records uncompressed."""
        return self._uncompressed_size or len(self._buf)

    @property
    def max_timestamp_ms(self) -> int:
        """The largest timestamp of the records, -1 without any."""
        return self._max_ts

    def grow_limit(self, limit: int) -> None:
        """Raise the size at which the batch is full; a smaller one is ignored."""
        self.limit = max(limit, self.limit)

    def freeze(self) -> memoryview:
        """The records, uncompressed, without the header. From here on nothing can be appended.

        Those of a batch that was closed compressed are decompressed for this call. Raises the codec's error, or a
        corrupt one, if that does not bring back what was compressed.
        """
        with self._lock:
            self.closed = True
            body = memoryview(self._buf).toreadonly()[HEADER_BYTES:]
            if not self._uncompressed_size:
                return body
        size = self._uncompressed_size - HEADER_BYTES
        return decompressed(self, self._attributes & _CODEC_BITS, body, size)

    def close(
        self,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        attributes: int,
        compressed: Buffer | None = None,
    ) -> None:
        """Take no more records and write the header; `compressed` is `freeze()` after the codec that `attributes` name.

        Without idempotence, id, epoch and sequence are -1. With `compressed`, the uncompressed records are let go.
        """
        with self._lock:
            if not self.count:
                raise ValueError("a batch without records cannot be closed")
            if self._complete or len(self._buf) == HEADER_BYTES:
                raise ValueError("the batch is closed already")
            self.closed = True
            self._attributes = attributes
            buf = self._buf
            if compressed is not None:
                buf = bytearray(HEADER_BYTES)
                buf += compressed
            self._write_header(buf, producer_id, producer_epoch, base_sequence)
            if compressed is not None:
                self._uncompressed_size = len(self._buf)
                self._buf = buf
            self._complete = True

    def restamp(self, producer_id: int, producer_epoch: int, base_sequence: int) -> None:
        """Give a closed batch another producer id, epoch and sequence, as after an epoch bump (KIP-360)."""
        if not self._complete:
            raise ValueError("only a closed batch can be restamped")
        buf = self._buf.copy()  # a request may still carry the bytes as they are
        self._write_header(buf, producer_id, producer_epoch, base_sequence)
        self._buf = buf

    def _write_header(
        self, buf: bytearray, producer_id: int, producer_epoch: int, base_sequence: int
    ) -> None:
        attributes, count = self._attributes, self.count
        place = (producer_id, producer_epoch, base_sequence)
        times = (self._base_ts, self._max_ts)
        try:
            _COVERED.pack_into(buf, _PREFIX.size, attributes, count - 1, *times, *place, count)
        except struct.error:
            raise unfit(attributes, *place) from None
        with memoryview(buf) as view:
            checksum = crc32c(view[_PREFIX.size :])
        _PREFIX.pack_into(buf, 0, 0, len(buf) - 12, -1, 2, checksum)

    def views(self) -> list[memoryview]:
        """The whole batch as it travels, in the pieces that it is kept in: one."""
        if not self._complete:
            raise ValueError("only a closed batch can be sent")
        return [memoryview(self._buf).toreadonly()]

    def records(
        self,
    ) -> Iterator[tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...], Future]]:
        """Timestamp, key, value, headers and a future of every record. Raises as `freeze` does."""
        return records_of(self, self._base_ts, Future)

    def split(self, limit: int, new_result: Callable[[], BatchResult]) -> list[BatchBuilder]:
        """Spread the records over batches of at most `limit` bytes each, in order; this one takes no more part.

        The futures, callbacks and waiters of this batch's result follow their records. The new batches are open, and
        as old as this one. Raises as `freeze` does, and then nothing has changed.
        """
        return spread(self, limit, new_result, BatchBuilder)

    def release(self) -> None:
        """Let go of the bytes. A request that still carries them keeps them alive for itself."""
        with self._lock:
            self.closed = True
            self._buf = bytearray(HEADER_BYTES)
            self._uncompressed_size = 0
            self._complete = False


def _checked_record(
    timestamp_ms: int,
    base_ts: int,
    index: int,
    key: bytes | None,
    value: bytes | None,
    headers: Headers | None,
) -> bytes:
    record = encode_record(timestamp_ms - base_ts, index, key, value, headers)
    check_timestamp(timestamp_ms, base_ts)
    if len(record) > MAX_RECORD_BYTES:
        raise too_large()
    return record


def encode_record(
    timestamp_delta: int, offset_delta: int, key: bytes | None, value: bytes | None, headers: Headers | None
) -> bytes:
    """One record of magic 2, with its length in front."""
    parts = [b"\0", zigzag(timestamp_delta), _varint(offset_delta)]
    if key is None:
        parts.append(_NULL)
    else:
        parts += (_varint(len(key)), key)
    if value is None:
        parts.append(_NULL)
    else:
        parts += (_varint(len(value)), value)
    if headers:
        parts.append(_varint(len(headers)))
        for name, content in headers:
            encoded = name.encode()
            parts += (_varint(len(encoded)), encoded)
            if content is None:
                parts.append(_NULL)
            else:
                parts += (_varint(len(content)), content)
    else:
        parts.append(b"\0")
    body = b"".join(parts)
    return _varint(len(body)) + body
