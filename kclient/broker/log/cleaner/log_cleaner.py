"""LogCleaner: the threads that clean logs."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs

from kclient.broker.log.cleaner.cleaner import Cleaner
from kclient.broker.log.cleaner.cleaner_manager import CleanerManager, CleaningAbortedError
from kclient.broker.log.cleaner.cleaner_stats import CleanerStats
from kclient.broker.log.cleaner.log_to_clean import LogToClean
from kclient.broker.log.cleaner.offset_map import OffsetMap
from kclient.broker.log.cleaner.throttler import Throttler
from kclient.broker.log.unified_log import UnifiedLog
from kclient.common.topic_partition import TopicPartition
from kclient.errors import KafkaStorageError
from kclient.utils.threads import KafkaThread
from kclient.utils.time import Time

log = logging.getLogger(__name__)


@attrs.frozen(kw_only=True)
class CleanerConfig:
    """Settings of the cleaner, with Kafka's defaults. Immutable."""

    threads: int = 1
    dedupe_buffer_bytes: int = 128 * 1024 * 1024
    """Memory for the keys of all threads."""
    dedupe_buffer_load_factor: float = 0.9
    io_max_bytes_per_second: float = 1.7976931348623157e308
    """Limit of what all threads read and write."""
    backoff_ms: int = 15_000
    """The time between two looks for something to do."""


@attrs.frozen(kw_only=True)
class CleanerMetrics:
    """The state of the cleaner, under Kafka's names. Immutable."""

    max_buffer_utilization_percent: float
    """The greatest share of an offset map that a thread's last round needed."""
    cleaner_recopy_percent: float
    """The share of bytes that stayed in the threads' last rounds."""
    max_clean_time_secs: float
    """The longest of the threads' last rounds."""
    max_compaction_delay_secs: float
    """The greatest time by which a log exceeds max.compaction.lag.ms."""
    max_dirty_percent: float
    """The dirty share of the dirtiest log."""
    time_since_last_run_ms: int
    dead_thread_count: int
    uncleanable_partitions_counts: Mapping[Path, int]
    """The logs that cannot be cleaned, by their log directories; those without one are left out."""


class LogCleaner:
    """Threads that compact the logs of which `logs` gives all. Thread-safe."""

    def __init__(self, config: CleanerConfig, logs: Callable[[], Sequence[UnifiedLog]], time: Time) -> None:
        self.manager = CleanerManager(logs, time)
        """The part that keeps cleaning apart from other changes of a log."""
        self._time = time
        self._lock = threading.Lock()
        self._running = False
        self._config = config
        self._threads = self._make_threads(config)

    def startup(self) -> None:
        """Start the threads."""
        with self._lock:
            self._running = True
            for thread in self._threads:
                thread.start()

    def reconfigure(self, config: CleanerConfig) -> None:
        """Use other settings: the threads end, giving up the round that is going on, and others begin."""
        with self._lock:
            if config == self._config:
                return
            self._config = config
            self._end_threads()
            self._threads = self._make_threads(config)
            if self._running:
                for thread in self._threads:
                    thread.start()

    def shutdown(self) -> None:
        """End the threads: a round that is going on is given up. Idempotent."""
        with self._lock:
            self._running = False
            self._end_threads()

    def metrics(self) -> CleanerMetrics:
        """The state as of now."""
        manager = self.manager
        stats = [thread.last_stats for thread in self._threads]
        looked_at = manager.last_look
        read = sum(one.read_bytes for one in stats)
        return CleanerMetrics(
            max_buffer_utilization_percent=100 * max(one.map_utilization for one in stats),
            cleaner_recopy_percent=100 * sum(one.kept_bytes for one in stats) / max(read, 1),
            max_clean_time_secs=max(one.elapsed_ms for one in stats) / 1000,
            max_compaction_delay_secs=max((one.compaction_delay_ms for one in looked_at), default=0) / 1000,
            max_dirty_percent=100 * max((one.cleanable_ratio for one in looked_at), default=0.0),
            time_since_last_run_ms=manager.time_since_last_look_ms,
            dead_thread_count=sum(thread.is_dead for thread in self._threads),
            uncleanable_partitions_counts=Counter(one.log_dir.path for one in manager.uncleanable),
        )

    def _make_threads(self, config: CleanerConfig) -> list[_CleanerThread]:
        throttler = Throttler(config.io_max_bytes_per_second, self._time)
        return [
            _CleanerThread(number, config, self.manager, throttler, self._time)
            for number in range(config.threads)
        ]

    def _end_threads(self) -> None:
        for thread in self._threads:
            thread.stop()
        for thread in self._threads:
            thread.join()


class _CleanerThread:
    """Cleans one log after the other, the dirtiest first, and waits when there is none."""

    def __init__(
        self, number: int, config: CleanerConfig, manager: CleanerManager, throttler: Throttler, time: Time
    ) -> None:
        self.last_stats = CleanerStats()
        self._manager = manager
        self._time = time
        self._backoff_ms = config.backoff_ms
        self._stopping = False
        self._wakeup = threading.Condition()
        offsets = OffsetMap.of_size(
            config.dedupe_buffer_bytes // config.threads, config.dedupe_buffer_load_factor
        )
        self._cleaner = Cleaner(offsets, throttler, time, self._check)
        self._thread = KafkaThread(f"log-cleaner-{number}", self._run)

    @property
    def is_dead(self) -> bool:
        """True if it ended by an error that it did not expect."""
        return self._thread.ident is not None and not self._stopping and not self._thread.is_alive()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ask it to end, in the middle of a log if need be."""
        with self._wakeup:
            self._stopping = True
            self._wakeup.notify_all()

    def join(self) -> None:
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping:
            to_clean = self._manager.grab_filthiest()
            cleaned = to_clean is not None and self._clean(to_clean)
            self._delete_old_segments()
            if not cleaned:
                with self._wakeup:
                    self._time.wait_for(self._wakeup, lambda: self._stopping, self._backoff_ms)

    def _clean(self, to_clean: LogToClean) -> bool:
        """Clean a log that was grabbed; return False if that failed, so that it is not tried again at once."""
        cleaned_to = None
        try:
            cleaned_to, self.last_stats = self._cleaner.clean(to_clean)
        except CleaningAbortedError:
            log.info("%s: cleaning was aborted", to_clean.log.topic_partition)
        except KafkaStorageError as error:
            log.warning("%s: cleaning failed: %s", to_clean.log.topic_partition, error)
        except Exception:
            self._manager.mark_uncleanable(to_clean.log)
        finally:
            self._manager.done(to_clean.log, cleaned_to)
        if cleaned_to is None:
            return False
        log.info(
            "%s: cleaned from offset %d to %d: %s",
            to_clean.log.topic_partition, to_clean.first_dirty_offset, cleaned_to, self.last_stats,
        )  # fmt: skip
        return True

    def _delete_old_segments(self) -> None:
        """Do for compacted logs what the log manager does for the others: no two threads take segments from a log."""
        with self._manager.compacted_logs() as logs:
            for one in logs:
                try:
                    if not self._stopping:
                        one.delete_old_segments()
                except KafkaStorageError as error:
                    log.warning("%s: retention failed: %s", one.topic_partition, error)
                except Exception:
                    self._manager.mark_uncleanable(one)

    def _check(self, tp: TopicPartition) -> None:
        if self._stopping:
            raise CleaningAbortedError
        self._manager.check_aborted(tp)
