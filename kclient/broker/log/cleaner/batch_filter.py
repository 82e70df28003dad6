"""BatchFilter: what stays of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress as select

import attrs

from kclient._accel import crc32c
from kclient.broker.log.cleaner.batch_keys import BatchKeys
from kclient.broker.log.cleaner.cleaned_transactions import CleanedTransactions
from kclient.broker.log.cleaner.cleaner_stats import CleanerStats
from kclient.broker.log.cleaner.offset_map import OffsetMap
from kclient.broker.log.compaction import LastBatch
from kclient.broker.log.validator import MAX_DECOMPRESSED_BYTES
from kclient.common.topic_partition import TopicPartition
from kclient.compress import CompressionType, compress, decompress
from kclient.record import constants as c
from kclient.record.batch import RecordBatch
from kclient.record.builder import MemoryRecordsBuilder
from kclient.record.record import TimestampType


@attrs.frozen(eq=False)
class BatchFilter:
    """Decides in one round over a log, batch by batch in its order. Belongs to one thread."""

    topic_partition: TopicPartition
    offsets: OffsetMap
    transactions: CleanedTransactions
    last_batches: Mapping[int, LastBatch]
    end_offset: int
    """The end of what can be cleaned: the batch before it stays, if only as a header, so that it is known how far the
    log goes."""
    now_ms: int
    delete_retention_ms: int
    stats: CleanerStats

    def apply(self, batch: RecordBatch) -> memoryview | bytes | None:
        """Return the bytes that take the batch's place, None if nothing does: those of `batch` if all of it stays.

        Raises CorruptRecordError for a wrong checksum, and as `RecordBatch.records`.
        """
        self.stats.read_bytes += batch.size_in_bytes
        self.stats.read_records += batch.count
        kept = self._control(batch) if batch.is_control else self._data(batch)
        if kept is None and self._has_to_stay(batch):
            kept = batch.view if batch.count == 0 else _emptied(batch)
        if kept is not None:
            self.stats.kept_bytes += len(kept)
        return kept

    def _control(self, batch: RecordBatch) -> memoryview | bytes | None:
        batch.ensure_valid()
        unneeded = self.transactions.on_control(batch)
        horizon_ms = batch.delete_horizon_ms
        if batch.count == 0 or (unneeded and horizon_ms is not None and horizon_ms <= self.now_ms):
            return None
        self.stats.kept_records += batch.count
        if unneeded and horizon_ms is None:
            return _rewritten(batch, None, self.now_ms + self.delete_retention_ms)
        return batch.view

    def _data(self, batch: RecordBatch) -> memoryview | bytes | None:
        if self.transactions.on_data(batch) or batch.count == 0:
            return None
        keys = BatchKeys.read(batch, self.topic_partition)
        kept = self._choose(batch, keys)
        has_tombstones = any(keys.tombstones) if kept is None else any(select(keys.tombstones, kept))
        horizon_ms = None
        if has_tombstones and batch.delete_horizon_ms is None:
            # They stay until all readers had time to see them; from now on, as what they delete goes now.
            horizon_ms = self.now_ms + self.delete_retention_ms
        if kept is None:
            self.stats.kept_records += batch.count
            return batch.view if horizon_ms is None else _rewritten(batch, None, horizon_ms)
        count = sum(kept)
        self.stats.kept_records += count
        if not count:
            return None
        if horizon_ms is None:
            return _spliced(batch, kept, max(select(keys.timestamps, kept)))
        return _rewritten(batch, kept, horizon_ms)

    def _choose(self, batch: RecordBatch, keys: BatchKeys) -> list[bool] | None:
        """Return for each record if it stays, None if all do."""
        kept = self.offsets.find_last(keys.keys, keys.offsets)
        latest = self.offsets.latest_offset
        if kept is not None and None in keys.keys:
            self.stats.keyless_records += sum(
                key is None and not stays for key, stays in zip(keys.keys, kept, strict=True)
            )
        horizon_ms = batch.delete_horizon_ms
        if keys.tombstones and horizon_ms is not None and horizon_ms <= self.now_ms:
            before = kept if kept is not None else [True] * len(keys.keys)
            kept = [
                stays and (offset > latest or not tombstone)
                for stays, offset, tombstone in zip(before, keys.offsets, keys.tombstones, strict=True)
            ]
        return None if kept is None or all(kept) else kept

    def _has_to_stay(self, batch: RecordBatch) -> bool:
        """Return True if at least the header has to stay."""
        if batch.next_offset == self.end_offset:
            return True
        last = self.last_batches.get(batch.producer_id) if batch.producer_id != c.NO_PRODUCER_ID else None
        if last is None:
            return False
        if last.offset >= 0:
            # It has the producer's last sequence.
            return batch.last_offset == last.offset
        # A marker that has the producer's epoch, which fences those before it.
        return batch.is_control and batch.producer_epoch == last.epoch


def _emptied(batch: RecordBatch) -> bytes:
    """Return the batch without its records."""
    return _header(batch, b"", 0, batch.attributes & ~(c.CODEC_MASK | c.DELETE_HORIZON_BIT), c.NO_TIMESTAMP)


def _spliced(batch: RecordBatch, kept: Sequence[bool], max_timestamp_ms: int) -> bytes:
    """Return the batch with some of its records, as they are: all they say is relative to the same header."""
    codec = batch.compression_type
    body = (
        bytes(batch.payload)
        if codec is CompressionType.NONE
        else decompress(codec, batch.payload, MAX_DECOMPRESSED_BYTES)
    )
    pieces = [
        body[begin:end] for (begin, end), stays in zip(_spans(body, len(kept)), kept, strict=True) if stays
    ]
    attributes = batch.attributes
    if batch.timestamp_type is TimestampType.LOG_APPEND_TIME:
        max_timestamp_ms = batch.max_timestamp_ms
    payload = compress(codec, b"".join(pieces))
    return _header(batch, payload, len(pieces), attributes, batch.base_timestamp_ms, max_timestamp_ms)


def _spans(body: bytes, count: int) -> list[tuple[int, int]]:
    """Return where each record begins and ends, of a body that was decoded before."""
    spans = []
    at = 0
    # Hot: of a size, a varint that is never negative, the one or two bytes that it nearly always has come first.
    for _ in range(count):
        begin = at
        size = body[at]
        at += 1
        if size >= 0x80:
            size = (size & 0x7F) + (body[at] << 7)
            at += 1
            shift = 14
            while size >> shift:
                size = (size & ((1 << shift) - 1)) + (body[at] << shift)
                at += 1
                shift += 7
        at += size >> 1
        spans.append((begin, at))
    return spans


def _header(
    batch: RecordBatch,
    payload: bytes,
    count: int,
    attributes: int,
    base_timestamp_ms: int,
    max_timestamp_ms: int | None = None,
) -> bytes:
    """Return the batch with another payload. Its place in the log, producer and sequences are those of before."""
    covered = c.COVERED.pack(
        attributes,
        batch.last_offset_delta,
        base_timestamp_ms,
        batch.max_timestamp_ms if max_timestamp_ms is None else max_timestamp_ms,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        count,
    )
    prefix = c.PREFIX.pack(
        batch.base_offset,
        c.BATCH_OVERHEAD - c.LOG_OVERHEAD + len(payload),
        batch.partition_leader_epoch,
        batch.magic,
        crc32c(payload, crc32c(covered)),
    )
    return prefix + covered + payload


def _rewritten(batch: RecordBatch, kept: Sequence[bool] | None, delete_horizon_ms: int) -> bytes:
    """Return the batch with some of its records (None: all) and a delete horizon, to which timestamps are relative."""
    by_broker = batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    builder = MemoryRecordsBuilder(
        compression=batch.compression_type,
        timestamp_type=batch.timestamp_type,
        base_offset=batch.base_offset,
        log_append_time_ms=batch.max_timestamp_ms if by_broker else c.NO_TIMESTAMP,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        is_transactional=batch.is_transactional,
        is_control=batch.is_control,
        partition_leader_epoch=batch.partition_leader_epoch,
        delete_horizon_ms=delete_horizon_ms,
    )
    records = batch.records(MAX_DECOMPRESSED_BYTES)
    for record in records if kept is None else select(records, kept):
        builder.append(record.timestamp_ms, record.key, record.value, record.headers, offset=record.offset)
    return builder.close(batch.last_offset)
