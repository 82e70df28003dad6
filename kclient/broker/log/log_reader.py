"""LogReader: batches, times and aborted transactions, found in the segments of a log."""

from __future__ import annotations

import attrs

from kclient.broker.log.local_log import LocalLog
from kclient.broker.log.log_guard import LogGuard
from kclient.broker.log.log_types import MAX_TIMESTAMP, LogOffsetMetadata
from kclient.broker.log.record_slice import RecordSlice
from kclient.broker.log.segment import LogSegment
from kclient.broker.log.transaction_index import collect_aborted


@attrs.frozen(eq=False)
class PinnedSegment:
    """A segment to read from, as it was at one moment."""

    segment: LogSegment
    size: int
    """Bytes that may be read."""
    markers: list[LogSegment] | None
    """The segments that may have the markers of what is read, in order; None unless aborted transactions are wanted.

    Found when the segment is: retention may take it, and those behind it, out of the log while it is read.
    """


@attrs.define(eq=False)
class LogReader:
    """Reads without the log's lock, which it takes only to find and pin segments. Thread-safe.

    It knows no isolation: up to which offset may be read is the caller's to say. Methods raise `KafkaStorageError` when
    the disk fails, and `CorruptRecordError` for damaged files.
    """

    _local: LocalLog
    _guard: LogGuard

    def pin(self, offset: int, limit: int, *, committed: bool = False) -> PinnedSegment | None:
        """Return the segment to `read` from on; None if nothing is there below `limit`.

        With `committed`, `read` tells the aborted transactions. Called with the lock held, so that both offsets are
        those of the same moment.
        """
        segment = self._local.segments.floor(offset) if offset < limit else None
        if segment is None:
            return None
        segment.pin()
        markers = self._local.segments.from_offset(offset) if committed else None
        return PinnedSegment(segment, segment.size, markers)

    def read(
        self,
        pinned: PinnedSegment,
        start_offset: int,
        limit: LogOffsetMetadata,
        max_bytes: int,
        *,
        log_end: int,
        min_one_batch: bool,
        inline_bytes: int | None,
    ) -> tuple[memoryview | RecordSlice, list[tuple[int, int]] | None] | None:
        """Return the batches from `start_offset` on, below `limit`, and the transactions aborted in them.

        None if there are no batches. The transactions are (producer, first offset), None unless they were asked for.
        `log_end` is where the log ended when the first segment was pinned.
        """
        following: PinnedSegment | None = pinned
        while following is not None:
            segment, max_position = following.segment, following.size
            with self._guard.disk("reading", (segment,)):
                if limit.offset < log_end:
                    max_position = _end_position(segment, limit, max_position)
                found = segment.read(
                    start_offset,
                    max_bytes,
                    max_position,
                    min_one_batch=min_one_batch,
                    inline_bytes=inline_bytes,
                )
                if found is not None:
                    position, data = found
                    aborted = None
                    if pinned.markers is not None:
                        end_position = position + len(data)
                        aborted = _aborted(pinned.markers, start_offset, segment, end_position, log_end)
                    return data, aborted
            # Compaction may have removed the segment's last offsets: the next batch is the next segment's first.
            with self._guard.lock:
                higher = self._local.segments.higher(segment.base_offset)
                following = None if higher is None else self.pin(higher.base_offset, limit.offset)
        return None

    def offset_for_timestamp(
        self, timestamp_ms: int, start_offset: int
    ) -> tuple[int, int, int | None] | None:
        """Return the first record from `start_offset` on that is not before a time, with -3 the one with the greatest.

        That is (timestamp, offset, leader epoch), None if there is none.
        """
        with self._guard.lock:
            segments = self._local.pin_from(start_offset)
        with self._guard.disk("looking up a time", segments):
            candidates = segments
            if timestamp_ms == MAX_TIMESTAMP:
                newest = max(segments, key=lambda segment: segment.max_timestamp[0])
                timestamp_ms = newest.max_timestamp[0]
                candidates = [newest] if timestamp_ms >= 0 else []
            for segment in candidates:
                if segment.max_timestamp[0] >= timestamp_ms:
                    found = segment.offset_for_timestamp(timestamp_ms, start_offset)
                    if found is not None:
                        timestamp, offset, epoch = found
                        return timestamp, offset, None if epoch < 0 else epoch
        return None


def _end_position(segment: LogSegment, limit: LogOffsetMetadata, size: int) -> int:
    """Return the position in `segment` at which reading ends: that of `limit`, or the end of its `size` bytes."""
    if limit.segment_base_offset == segment.base_offset:
        return min(limit.position, size)
    end = segment.position_of(limit.offset)
    return size if end is None else min(end, size)


def _aborted(
    segments: list[LogSegment], start_offset: int, segment: LogSegment, end_position: int, log_end: int
) -> list[tuple[int, int]]:
    """Return producer and first offset of the aborted transactions among batches that were read.

    They begin at `start_offset`, and end in `segment` at `end_position`.
    """
    later = [one for one in segments if one.base_offset >= segment.base_offset]
    upper = segment.offset_index.upper_bound(end_position)
    if upper is None:
        upper = later[1].base_offset if len(later) > 1 else log_end
    aborted = collect_aborted((one.txn_index for one in later), start_offset, upper)
    return [(txn.producer_id, txn.first_offset) for txn in aborted]
