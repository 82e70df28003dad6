"""CleanerManager: which log is cleaned next, which must not be, and how far each is clean."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from kclient.broker.log.cleaner.log_to_clean import LogToClean, look_at
from kclient.broker.log.log_directory import LogDirectory
from kclient.broker.log.unified_log import UnifiedLog
from kclient.common.topic_partition import TopicPartition
from kclient.errors import KafkaStorageError
from kclient.utils.time import Time

log = logging.getLogger(__name__)


class CleaningAbortedError(Exception):
    """A round of cleaning ends early because something else is to be done with the log."""


class CleanerManager:
    """Keeps cleaning apart from all that changes the segments of a log: retention, truncation, deletion. Thread-safe.

    A partition is in progress while a cleaner thread has it, and paused while others have: any number of them. One that
    is in progress and gets paused is aborted: its thread gives up at the next `check_aborted`. Progress is kept in the
    file `cleaner-offset-checkpoint` of each log directory. Never holds its lock while it waits or reads a log.
    """

    def __init__(self, logs: Callable[[], Sequence[UnifiedLog]], time: Time) -> None:
        """`logs` gives all logs there are. It is called with the lock held, and must take none."""
        self._logs = logs
        self._time = time
        self._lock = threading.Condition()
        self._in_progress: set[TopicPartition] = set()
        self._pauses: Counter[TopicPartition] = Counter()
        self._uncleanable: set[UnifiedLog] = set()
        self._cleaned_to: dict[LogDirectory, dict[TopicPartition, int]] = {}
        self._last_look: Sequence[LogToClean] = ()
        self._last_look_ms = time.monotonic_ms()

    @property
    def last_look(self) -> Sequence[LogToClean]:
        """The logs that there were to choose from the last time, dirty or not."""
        return self._last_look

    @property
    def time_since_last_look_ms(self) -> int:
        """The time since a cleaner thread looked for a log to clean."""
        return self._time.monotonic_ms() - self._last_look_ms

    @property
    def uncleanable(self) -> list[UnifiedLog]:
        """The logs on which cleaning failed: they are left alone until the next start."""
        with self._lock:
            self._uncleanable.intersection_update(self._logs())
            return sorted(self._uncleanable, key=lambda one: one.topic_partition)

    def cleaned_to(self, log_: UnifiedLog) -> int | None:
        """The offset up to which the log was cleaned, None if it never was."""
        with self._lock:
            return self._offsets(log_.log_dir).get(log_.topic_partition)

    def grab_filthiest(self) -> LogToClean | None:
        """Choose the log with the greatest dirty share of those that are due; it is in progress until `done`."""
        now_ms = self._time.wall_ms()
        self._last_look_ms = self._time.monotonic_ms()
        uncleanable = self.uncleanable
        found = []
        for one in self._free_logs(lambda one: one.config.compact and one not in uncleanable):
            try:
                cleaned_to = self.cleaned_to(one)
                to_clean = look_at(one, cleaned_to, now_ms)
                if cleaned_to not in (None, to_clean.first_dirty_offset):
                    with self._lock:
                        self._set_cleaned_to(one, to_clean.first_dirty_offset)
            except KafkaStorageError:
                continue  # closed or offline meanwhile
            except Exception:
                self.mark_uncleanable(one)
                continue
            if to_clean.total_bytes:
                found.append(to_clean)
        self._last_look = found
        with self._lock:
            due = [one for one in found if one.is_due and self._is_free(one.log)]
            if not due:
                return None
            filthiest = max(due, key=lambda one: one.cleanable_ratio)
            self._in_progress.add(filthiest.log.topic_partition)
            return filthiest

    def done(self, log_: UnifiedLog, cleaned_to: int | None) -> None:
        """The log that was grabbed is cleaned up to an offset, or given up (None)."""
        with self._lock:
            if cleaned_to is not None and not self._pauses[log_.topic_partition]:
                self._set_cleaned_to(log_, cleaned_to)
            self._in_progress.discard(log_.topic_partition)
            self._lock.notify_all()

    @contextmanager
    def compacted_logs(self) -> Iterator[list[UnifiedLog]]:
        """Return a context with the compacted logs that are free, for the retention of a cleaner thread."""
        with self._lock:
            free = self._free_logs(lambda one: one.config.compact and one not in self._uncleanable)
            self._in_progress.update(one.topic_partition for one in free)
        try:
            yield free
        finally:
            with self._lock:
                self._in_progress.difference_update(one.topic_partition for one in free)
                self._lock.notify_all()

    @contextmanager
    def other_logs(self) -> Iterator[list[UnifiedLog]]:
        """Return a context with the logs that are free and not compacted, for their retention; they are paused.

        So retention and compaction do not meet where the policy of a topic is being changed.
        """
        with self._lock:
            free = self._free_logs(lambda one: not one.config.compact)
            self._pauses.update(one.topic_partition for one in free)
        try:
            yield free
        finally:
            self.resume(one.topic_partition for one in free)

    @contextmanager
    def paused(self, tp: TopicPartition) -> Iterator[None]:
        """Return a context in which nobody cleans the partition; a round that is going on is waited for."""
        self.abort_and_pause(tp)
        try:
            yield
        finally:
            self.resume((tp,))

    def abort_and_pause(self, tp: TopicPartition) -> None:
        """Let nobody clean the partition until `resume`. A round that is going on ends soon, and is waited for."""
        with self._lock:
            self._pauses[tp] += 1
            while tp in self._in_progress:
                self._lock.wait()

    def resume(self, tps: Iterable[TopicPartition]) -> None:
        """Undo one pause of each partition."""
        with self._lock:
            for tp in tps:
                self._pauses[tp] -= 1
                if self._pauses[tp] <= 0:
                    del self._pauses[tp]

    def check_aborted(self, tp: TopicPartition) -> None:
        """Raise `CleaningAbortedError` if a partition that is in progress is to be paused."""
        if tp in self._pauses:
            raise CleaningAbortedError

    def mark_uncleanable(self, log_: UnifiedLog) -> None:
        """Clean the log no more, because of the error that is being handled."""
        log.exception("%s cannot be cleaned; it is left as it is until the next start", log_.topic_partition)
        with self._lock:
            self._uncleanable.add(log_)

    def truncate_checkpoint(self, log_: UnifiedLog, offset: int) -> None:
        """The log is clean no further than up to `offset`. Called while it is paused."""
        with self._lock:
            cleaned_to = self._offsets(log_.log_dir).get(log_.topic_partition)
            if cleaned_to is not None and cleaned_to > offset:
                self._set_cleaned_to(log_, offset)

    def forget(self, log_dir: LogDirectory, tp: TopicPartition) -> None:
        """The partition was deleted."""
        with self._lock:
            if self._offsets(log_dir).pop(tp, None) is not None:
                self._write(log_dir)

    def _free_logs(self, wanted: Callable[[UnifiedLog], bool]) -> list[UnifiedLog]:
        with self._lock:
            return [one for one in self._logs() if wanted(one) and self._is_free(one)]

    def _is_free(self, log_: UnifiedLog) -> bool:
        tp = log_.topic_partition
        return tp not in self._in_progress and tp not in self._pauses and log_.log_dir.offline_error is None

    def _offsets(self, log_dir: LogDirectory) -> dict[TopicPartition, int]:
        offsets = self._cleaned_to.get(log_dir)
        if offsets is None:
            try:
                offsets = log_dir.read_checkpoint(log_dir.cleaner_offsets)
            except OSError as error:
                raise log_dir.fail("reading the checkpoint of the cleaner", error) from error
            self._cleaned_to[log_dir] = offsets
        return offsets

    def _set_cleaned_to(self, log_: UnifiedLog, offset: int) -> None:
        self._offsets(log_.log_dir)[log_.topic_partition] = offset
        self._write(log_.log_dir)

    def _write(self, log_dir: LogDirectory) -> None:
        if log_dir.offline_error is not None:
            return
        there = {one.topic_partition for one in self._logs() if one.log_dir is log_dir}
        try:
            log_dir.cleaner_offsets.write(
                {tp: offset for tp, offset in self._offsets(log_dir).items() if tp in there}
            )
        except OSError as error:
            log_dir.fail("writing the checkpoint of the cleaner", error)
