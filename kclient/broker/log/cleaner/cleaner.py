"""Cleaner: one round over one log, in two passes."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise

import attrs

from kclient.broker.log.cleaner.batch_filter import BatchFilter
from kclient.broker.log.cleaner.batch_keys import BatchKeys
from kclient.broker.log.cleaner.cleaned_transactions import CleanedTransactions
from kclient.broker.log.cleaner.cleaner_stats import CleanerStats
from kclient.broker.log.cleaner.log_to_clean import LogToClean
from kclient.broker.log.cleaner.offset_map import OffsetMap
from kclient.broker.log.cleaner.segment_groups import group_segments
from kclient.broker.log.cleaner.throttler import Throttler
from kclient.broker.log.files import CLEANED_SUFFIX
from kclient.broker.log.segment import LogSegment
from kclient.broker.log.transaction_index import AbortedTxn, collect_aborted
from kclient.common.topic_partition import TopicPartition
from kclient.errors import InvalidRecordError
from kclient.record import constants as c
from kclient.record.batch import RecordBatch
from kclient.record.memory_records import iter_batches
from kclient.utils.time import Time

log = logging.getLogger(__name__)

_WRITE_BYTES = 1024 * 1024


@attrs.define(eq=False)
class Cleaner:
    """Cleans one log at a time. Belongs to one thread.

    `check` is called all the time with the log's partition, and raises what ends the round early; then some of the
    log's segments may be cleaned and others not, which does no harm.
    """

    _offsets: OffsetMap
    _throttler: Throttler
    _time: Time
    _check: Callable[[TopicPartition], None]

    def clean(self, dirty: LogToClean) -> tuple[int, CleanerStats]:
        """Take out of the log what later records of its dirty part supersede; returns the offset up to which it is
        clean.

        That is less than the end of the dirty part if the offset map cannot hold all its keys. Raises
        `KafkaStorageError`, `CorruptRecordError` and `InvalidRecordError` for damaged files, and what `check` raises.
        """
        started_ms = self._time.monotonic_ms()
        now_ms = self._time.wall_ms()
        stats = CleanerStats()
        try:
            with dirty.log.compaction.reading(dirty.segments):
                self._build_offset_map(dirty, stats)
                stats.index_ms = self._time.monotonic_ms() - started_ms
                stats.map_utilization = self._offsets.utilization
                end_offset = max(self._offsets.latest_offset + 1, dirty.first_dirty_offset)
                self._copy(dirty, end_offset, now_ms, stats)
        finally:
            self._offsets.clear()
        stats.elapsed_ms = self._time.monotonic_ms() - started_ms
        return end_offset, stats

    def _build_offset_map(self, dirty: LogToClean, stats: CleanerStats) -> None:
        """Find the last offset of each key between the first dirty and the first uncleanable offset."""
        start, end, tp = dirty.first_dirty_offset, dirty.first_uncleanable_offset, dirty.log.topic_partition
        transactions = CleanedTransactions()
        transactions.add_aborted(_aborted(dirty.segments, start, end))
        offsets = self._offsets
        for segment, following in pairwise(dirty.segments):
            if following.base_offset <= start or segment.base_offset >= end:
                continue
            position = segment.position_of(start)
            for batch in () if position is None else self._batches(segment, position, tp):
                stats.indexed_bytes += batch.size_in_bytes
                stats.indexed_records += batch.count
                if batch.is_control:
                    transactions.on_control(batch)
                elif not transactions.on_data(batch) and batch.count:
                    keys = BatchKeys.read(batch, tp, start)
                    if not offsets.put_all(keys.keys, keys.offsets):
                        log.info("%s: the offset map is full at offset %d", tp, offsets.latest_offset)
                        return
                offsets.latest_offset = batch.last_offset
            # There may be a gap at its end.
            offsets.latest_offset = following.base_offset - 1

    def _copy(self, dirty: LogToClean, end_offset: int, now_ms: int, stats: CleanerStats) -> None:
        """Copy what stays of all segments before `end_offset`, and swap the copies in."""
        log_, segments = dirty.log, dirty.segments
        ends = {segment.base_offset: following.base_offset for segment, following in pairwise(segments)}
        cleanable = [segment for segment in segments[:-1] if segment.base_offset < end_offset]
        transactions = CleanedTransactions()
        for group in group_segments(cleanable, log_.config, dirty.first_uncleanable_offset):
            cleaned = log_.compaction.new_segment(group[0].base_offset)
            try:
                transactions.index = cleaned.txn_index
                batch_filter = BatchFilter(
                    log_.topic_partition,
                    self._offsets,
                    transactions,
                    log_.compaction.last_batches(),
                    dirty.first_uncleanable_offset,
                    now_ms,
                    log_.config.delete_retention_ms,
                    stats,
                )
                for segment in group:
                    # All of them, as the index of the cleaned segment is made of them.
                    end = ends[segment.base_offset]
                    transactions.add_aborted(_aborted(segments, segment.base_offset, end))
                    self._copy_segment(segment, cleaned, batch_filter)
                cleaned.become_inactive()
                cleaned.flush()
                # Retention goes by it where records have no timestamps.
                modified_ns = group[-1].path.stat().st_mtime_ns
                os.utime(cleaned.path, ns=(modified_ns, modified_ns))
                self._check(log_.topic_partition)
                log_.compaction.replace(cleaned, group)
            except BaseException:
                _give_up(cleaned)
                raise

    def _copy_segment(self, segment: LogSegment, cleaned: LogSegment, batch_filter: BatchFilter) -> None:
        pending = bytearray()
        for batch in self._batches(segment, 0, batch_filter.topic_partition):
            kept = batch_filter.apply(batch)
            if kept is not None:
                pending += kept
            if len(pending) >= _WRITE_BYTES:
                self._write(pending, cleaned, batch_filter.topic_partition)
                pending = bytearray()
        if pending:
            self._write(pending, cleaned, batch_filter.topic_partition)

    def _write(self, data: bytearray, cleaned: LogSegment, tp: TopicPartition) -> None:
        cleaned.append(data, [batch for batch in iter_batches(data) if isinstance(batch, RecordBatch)])
        self._throttler.throttle(len(data), partial(self._check, tp))

    def _batches(self, segment: LogSegment, position: int, tp: TopicPartition) -> Iterator[RecordBatch]:
        """Return the batches of a segment; between them the round may end, or be slowed down."""
        check = partial(self._check, tp)
        for _, batch in segment.batches(position):
            check()
            self._throttler.throttle(batch.size_in_bytes, check)
            if batch.magic != c.MAGIC_2:
                raise InvalidRecordError(
                    f"{segment.path.name} has a batch of the old format {batch.magic} at offset {batch.base_offset}, "
                    "which is not cleaned"
                )
            yield batch


def _aborted(segments: Sequence[LogSegment], start: int, end: int) -> list[AbortedTxn]:
    """Return the transactions aborted in [start, end), the markers of which may come later."""
    following = [segment.base_offset for segment in segments[1:]]
    from_start = [
        segment.txn_index
        for segment, base_offset in zip(segments, [*following, end + 1], strict=True)
        if base_offset > start
    ]
    return collect_aborted(from_start, start, end)


def _give_up(cleaned: LogSegment) -> None:
    """Remove what was written so far; what cannot be removed now is at the next start."""
    cleaned.close_files()
    if cleaned.path.name.endswith(CLEANED_SUFFIX):
        with suppress(OSError):
            cleaned.delete_files()
