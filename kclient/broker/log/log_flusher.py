"""LogFlusher: how much of a log is on disk, and how more gets there."""

from __future__ import annotations

from kclient.broker.log.durability import AckPolicy, DirectoryCommit, GroupCommit
from kclient.broker.log.local_log import LocalLog
from kclient.broker.log.log_guard import LogGuard
from kclient.broker.timer.scheduler import Scheduler
from kclient.utils.time import Time


class LogFlusher:
    """Forces a log to disk: batches before they are acknowledged, if the policy asks for that, and all now and then.

    Thread-safe; it forces without the log's lock. Methods raise `KafkaStorageError` when the disk fails.
    """

    def __init__(
        self,
        local: LocalLog,
        guard: LogGuard,
        commits: DirectoryCommit,
        scheduler: Scheduler,
        time: Time,
        *,
        ack_policy: AckPolicy,
        recovery_point: int,
    ) -> None:
        self.recovery_point = recovery_point
        """Below it everything is on disk."""
        self.syncs_appends = ack_policy is AckPolicy.ALWAYS
        """True if every append calls `sync_append`."""
        self.commits_later = ack_policy is AckPolicy.BATCH
        """True if what is appended has to be waited for, by `commit`, until it is as durable as the policy asks."""
        self.commit = GroupCommit(commits, self._sync_batches)
        self._commits = commits
        self._local = local
        self._guard = guard
        self._scheduler = scheduler
        self._time = time
        self._synced_offset = recovery_point
        self._last_flush_ms = time.monotonic_ms()
        self._scheduled = False

    def sync_append(self) -> None:
        """Force the batches written so far to disk. Called with the lock held; raises OSError."""
        # Mostly the active segment alone; after a crash also what was found in others, or was repeated by its producer
        # and is acknowledged now.
        for segment in self._local.segments.from_offset(self._synced_offset):
            segment.records.flush()
        self._local.sync_directory()
        self._synced_offset = self._local.log_end_offset

    def flush(self) -> None:
        """Force everything written so far to disk, and move the recovery point."""
        with self._guard.lock:
            self._guard.check_usable()
            end_offset = self._local.log_end_offset
            with self._guard.disk("writing indexes"):
                for segment in self._local.segments.from_offset(self.recovery_point):
                    segment.write_indexes()
            segments = self._local.pin_from(self.recovery_point)
        began_ns = self._time.monotonic_ns()
        with self._guard.disk("flushing", segments):
            for segment in segments:
                segment.flush()
            self._local.sync_directory()
        self._commits.flushed(self._time.monotonic_ns() - began_ns)
        with self._guard.lock:
            # The log may have been truncated meanwhile.
            self.recovery_point = max(self.recovery_point, min(end_offset, self._local.log_end_offset))
            self._last_flush_ms = self._time.monotonic_ms()

    def flush_rest(self) -> None:
        """Flush what is not flushed: the last thing before the log is closed for good."""
        with self._guard.lock:
            flushed = self._local.log_end_offset <= self.recovery_point and not self._local.directory_changed
            if flushed or self._local.is_unused:
                return
        self.flush()

    def flush_if_due(self) -> None:
        """Flush if something is unflushed for longer than flush.ms."""
        unflushed = self._local.log_end_offset > self.recovery_point
        if unflushed and self._time.monotonic_ms() - self._last_flush_ms >= self._local.config.flush_ms:
            self.flush()

    def flush_soon(self) -> None:
        """Flush in the background, as for a segment that was rolled: one does for all that are rolled until then.

        Called with the lock held.
        """
        if not self._scheduled:
            self._scheduled = True
            self._scheduler.schedule_once(f"flush-{self._local.topic_partition}", self._flush_if_usable)

    def truncated_to(self, offset: int) -> None:
        """The log was cut back: what is written there from now on is not on disk. Called with the lock held."""
        self.recovery_point = min(self.recovery_point, offset)
        self._synced_offset = min(self._synced_offset, offset)
        self.commit.truncate_to(offset)

    def _flush_if_usable(self) -> None:
        with self._guard.lock:
            self._scheduled = False
            usable = self._guard.usable
        if usable:
            self.flush()

    def _sync_batches(self) -> int:
        """Force the batches written so far to disk, not the indexes; returns the end they reach to."""
        with self._guard.lock:
            self._guard.check_usable()
            end_offset = self._local.log_end_offset
            segments = self._local.pin_from(self._synced_offset)
        began_ns = self._time.monotonic_ns()
        with self._guard.disk("syncing an append", segments):
            for segment in segments:
                segment.records.flush()
            self._local.sync_directory()
        self._commits.flushed(self._time.monotonic_ns() - began_ns)
        with self._guard.lock:
            self._synced_offset = max(self._synced_offset, min(end_offset, self._local.log_end_offset))
        return end_offset
