"""LogRetention: where a log begins, and how what lies before leaves it and the disk."""

from __future__ import annotations

import logging
from collections.abc import Callable

import attrs

from kclient.broker.log.config import LogConfig
from kclient.broker.log.epoch_cache import LeaderEpochCache
from kclient.broker.log.local_log import LocalLog, LogSegments
from kclient.broker.log.producer_state_manager import ProducerStateManager
from kclient.broker.log.segment import LogSegment, close_for_deletion
from kclient.broker.timer.scheduler import Scheduler

log = logging.getLogger(__name__)


@attrs.define(eq=False)
class LogRetention:
    """The start of a log, and the removal of segments: from the log at once, from the disk after file.delete.delay.ms.

    `roll` begins a new segment. Guarded by the log's lock; methods raise OSError when the disk fails.
    """

    _local: LocalLog
    _producers: ProducerStateManager
    _epochs: LeaderEpochCache
    _scheduler: Scheduler
    _roll: Callable[[], object]
    log_start_offset: int
    """The first offset that can be read."""

    def move_start(self, offset: int, why: str) -> None:
        """Let the log begin at `offset`; it never goes back."""
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self._epochs.truncate_from_start(offset)
            self._producers.on_log_start_offset_incremented(offset)
            log.info("%s: the log starts at offset %d: %s", self._local.topic_partition, offset, why)

    def delete_old_segments(self, now_ms: int, high_watermark: int) -> int:
        """Delete segments that are too old, too many, or below the log's start; returns how many.

        None of what lies above the high watermark: a leader that deleted it would begin above what it has promised.
        """
        local, count = self._local, 0

        def delete(segments: list[LogSegment], why: str) -> int:
            return self._delete(self._replicated(segments, high_watermark), why)

        if local.config.delete:
            count += delete(_expired(local.segments, local.config, now_ms), "older than retention.ms")
            count += delete(_surplus(local.segments, local.config), "more than retention.bytes")
        return count + delete(_below(local.segments, self.log_start_offset), "below the log's start")

    def truncate_to(self, offset: int) -> None:
        """End the log at `offset`; it starts anew there if that is before its first segment."""
        local = self._local
        if offset >= local.segments.first.base_offset:
            self._delete_files(local.truncate_to(offset))
        else:
            self._remove(list(local.segments))
            local.log_end_offset = offset
            local.open_segment(offset)
            self._producers.truncate_fully_and_start_at(offset)
        self.log_start_offset = min(self.log_start_offset, offset)

    def _replicated(self, segments: list[LogSegment], high_watermark: int) -> list[LogSegment]:
        """Return those of a run of segments that end at or below the high watermark."""

        def end(segment: LogSegment) -> int:
            following = self._local.segments.higher(segment.base_offset)
            return self._local.log_end_offset if following is None else following.base_offset

        return [segment for segment in segments if end(segment) <= high_watermark]

    def replace(self, cleaned: LogSegment, replaced: list[LogSegment]) -> None:
        """Put the result of a compaction in the place of the segments it was made from."""
        self._local.replace_segments(cleaned, replaced)
        self._delete_files(replaced, kept_snapshot=cleaned.base_offset)

    def _delete(self, segments: list[LogSegment], why: str) -> int:
        if segments:
            if len(segments) == len(self._local.segments):
                self._roll()
            self._remove(segments)
            self.move_start(self._local.segments.first.base_offset, f"segments deleted, {why}")
        return len(segments)

    def _remove(self, segments: list[LogSegment]) -> None:
        self._local.detach(segments)
        self._delete_files(segments)

    def _delete_files(self, segments: list[LogSegment], kept_snapshot: int | None = None) -> None:
        """Unlink files that are marked as deleted, and the snapshots that belong to them, after the delay."""
        snapshots = [
            self._producers.mark_snapshot_deleted(segment.base_offset)
            for segment in segments
            if segment.base_offset != kept_snapshot
        ]
        delete = close_for_deletion(segments, snapshots)
        if segments:
            name = f"delete-files-{self._local.topic_partition}"
            self._scheduler.schedule_once(name, delete, self._local.config.file_delete_delay_ms)


# Segments that a log need not keep any more are always a run of the oldest, and never an empty active one.


def _expired(segments: LogSegments, config: LogConfig, now_ms: int) -> list[LogSegment]:
    if config.retention_ms < 0:
        return []
    return _oldest(segments, lambda segment: now_ms - segment.largest_timestamp_ms > config.retention_ms)


def _surplus(segments: LogSegments, config: LogConfig) -> list[LogSegment]:
    """Segments without which the log still has retention.bytes."""
    if config.retention_bytes < 0:
        return []
    excess = sum(segment.size for segment in segments) - config.retention_bytes

    def is_surplus(segment: LogSegment) -> bool:
        nonlocal excess
        excess -= segment.size
        return excess >= 0

    return _oldest(segments, is_surplus)


def _below(segments: LogSegments, log_start_offset: int) -> list[LogSegment]:
    """Segments that end before the log's start."""

    def is_below(segment: LogSegment) -> bool:
        following = segments.higher(segment.base_offset)
        return following is not None and following.base_offset <= log_start_offset

    return _oldest(segments, is_below)


def _oldest(segments: LogSegments, condition: Callable[[LogSegment], bool]) -> list[LogSegment]:
    found = []
    for segment in segments:
        if (segment is segments.active and segment.size == 0) or not condition(segment):
            break
        found.append(segment)
    return found
