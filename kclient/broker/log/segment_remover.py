"""SegmentRemover: how segments leave their log, and their files the disk."""

from __future__ import annotations

from collections.abc import Sequence

from kclient.broker.log.local_log import LocalLog
from kclient.broker.log.producer_state_manager import ProducerStateManager
from kclient.broker.log.segment import LogSegment, close_for_deletion
from kclient.broker.timer.scheduler import Scheduler


class SegmentRemover:
    """Takes segments out of a log at once, and deletes their files after file.delete.delay.ms.

    Guarded by the log's lock; methods raise OSError when the disk fails.
    """

    __slots__ = ("_local", "_producers", "_scheduler")

    def __init__(self, local: LocalLog, producers: ProducerStateManager, scheduler: Scheduler) -> None:
        self._local = local
        self._producers = producers
        self._scheduler = scheduler

    def remove(self, segments: list[LogSegment]) -> None:
        """Take `segments` out of the log, which keeps others."""
        self._local.detach(segments)
        self._delete_later(segments)

    def truncate_to(self, offset: int) -> None:
        """End the log at `offset`; it starts anew there if that is before its first segment."""
        if offset >= self._local.segments.first.base_offset:
            self._delete_later(self._local.truncate_to(offset))
            return
        self.remove(list(self._local.segments))
        self._local.log_end_offset = offset
        self._local.open_segment(offset)
        self._producers.truncate_fully_and_start_at(offset)

    def _delete_later(self, segments: Sequence[LogSegment]) -> None:
        """Unlink files that are marked as deleted, and the snapshots that belong to them, after the delay."""
        snapshots = [self._producers.mark_snapshot_deleted(segment.base_offset) for segment in segments]
        delete = close_for_deletion(segments, snapshots)
        if segments:
            name = f"delete-files-{self._local.topic_partition}"
            self._scheduler.schedule_once(name, delete, self._local.config.file_delete_delay_ms)
