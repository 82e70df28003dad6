"""LogToClean: which part of a log can be cleaned, and how much there is to gain."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import attrs

from kclient.broker.log.segment import LogSegment
from kclient.broker.log.unified_log import UnifiedLog

log = logging.getLogger(__name__)


@attrs.frozen(eq=False)
class LogToClean:
    """A log as it was at one moment. Immutable.

    Up to `first_dirty_offset` it was cleaned before; the segments from `first_uncleanable_offset` on have to stay as
    they are. `clean_bytes` are those of segments before the one, `cleanable_bytes` of those between the two.
    """

    log: UnifiedLog
    segments: Sequence[LogSegment]
    """All that it had; the last is the active one."""
    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    cleanable_bytes: int
    compaction_delay_ms: int
    """The time by which max.compaction.lag.ms is exceeded, 0 if it is not."""

    @property
    def total_bytes(self) -> int:
        """Bytes of all segments that are looked at."""
        return self.clean_bytes + self.cleanable_bytes

    @property
    def cleanable_ratio(self) -> float:
        """The share of the dirty part."""
        return self.cleanable_bytes / self.total_bytes if self.total_bytes else 0.0

    @property
    def is_due(self) -> bool:
        """True if it is dirty enough, or has been dirty for too long."""
        if self.compaction_delay_ms > 0 and self.cleanable_bytes > 0:
            return True
        return self.cleanable_ratio > self.log.config.min_cleanable_dirty_ratio


def look_at(log_: UnifiedLog, cleaned_to: int | None, now_ms: int) -> LogToClean:
    """Return what there is to clean in a log; `cleaned_to` is the checkpoint of former rounds, None for none.

    Raises `KafkaStorageError`, and `CorruptRecordError` for damaged files.
    """
    segments = log_.compaction.segments()
    first_dirty = _first_dirty(log_, cleaned_to)
    active = segments[-1]
    uncleanable = min(log_.last_stable_offset, active.base_offset)
    lag_ms = log_.config.min_compaction_lag_ms
    dirty = [one for one in _from(segments, first_dirty) if one is not active]
    if lag_ms > 0:
        young = (one.base_offset for one in dirty if one.largest_timestamp_ms > now_ms - lag_ms)
        uncleanable = min(uncleanable, next(young, uncleanable))
    # Whole segments only: the one with the first offset that has to stay, stays.
    first_uncleanable = _from(segments, max(uncleanable, first_dirty))[0].base_offset
    clean_bytes = sum(one.size for one in segments if one.base_offset < first_dirty)
    cleanable = (one.size for one in dirty if one.base_offset < first_uncleanable)
    return LogToClean(
        log_,
        segments,
        first_dirty,
        first_uncleanable,
        clean_bytes,
        sum(cleanable),
        _delay_ms(dirty, log_.config.max_compaction_lag_ms, now_ms),
    )


def _first_dirty(log_: UnifiedLog, cleaned_to: int | None) -> int:
    start, end = log_.log_start_offset, log_.log_end_offset
    if cleaned_to is None or start <= cleaned_to <= end:
        return start if cleaned_to is None else cleaned_to
    if cleaned_to > end or not log_.config.delete:
        # Retention moves the start on; what else does that is worth a word.
        log.warning(
            "%s: was cleaned up to offset %d, which is not between its start %d and its end %d: all of it is dirty",
            log_.topic_partition, cleaned_to, start, end,
        )  # fmt: skip
    return start


def _delay_ms(dirty: Sequence[LogSegment], lag_ms: int, now_ms: int) -> int:
    times = [time for segment in dirty if (time := segment.first_timestamp_ms) > 0]
    return max(now_ms - lag_ms - min(times), 0) if times else 0


def _from(segments: Sequence[LogSegment], offset: int) -> list[LogSegment]:
    """Return the segments that may hold `offset` or anything after it."""
    ends = [segment.base_offset for segment in segments[1:]]
    return [segment for segment, end in zip(segments, [*ends, offset + 1], strict=True) if end > offset]
