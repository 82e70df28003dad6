"""LogManager: all logs of a broker, in one or more directories, and the work that goes on behind them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

import attrs

from kclient.broker.log.checkpoints import OffsetCheckpoint
from kclient.broker.log.cleaner.log_cleaner import CleanerConfig, LogCleaner
from kclient.broker.log.config import LogConfig
from kclient.broker.log.durability import AckPolicy
from kclient.broker.log.file_system import DISK, FileSystem
from kclient.broker.log.files import delete_dir_name, partition_dir_name
from kclient.broker.log.loader import LoadOptions, load_log
from kclient.broker.log.log_directories import LogDirectories
from kclient.broker.log.log_directory import FoundPartition, LogDirectory
from kclient.broker.log.log_loading import LogLoading
from kclient.broker.log.log_tasks import LogIntervals, schedule_tasks
from kclient.broker.log.producer_state_manager import PRODUCER_ID_EXPIRATION_MS
from kclient.broker.log.unified_log import UnifiedLog
from kclient.broker.timer.scheduler import ScheduledTask, Scheduler
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import IllegalStateError, KafkaError, KafkaStorageError, UnknownTopicOrPartitionError
from kclient.record.open_files import OpenFiles
from kclient.utils.time import SYSTEM_TIME, Time

log = logging.getLogger(__name__)

T = TypeVar("T")

_OPEN_FILES = 1024


class LogManager:
    """Opens, makes, looks after and deletes logs. Thread-safe.

    Without a `scheduler` it has one of its own, which it starts and stops. A directory whose disk fails goes
    offline with all its logs; the others go on. `node_id` and `cluster_id` are written into new directories
    and compared with those of old ones; None takes the cluster of the directories, or a new one. The segments of all
    logs are among `files`. `on_all_offline` is called when the last directory has gone offline, with whatever locks
    are held. Without a `cleaner` logs are not compacted. After an unclean shutdown `recovery_threads` open the logs of
    each directory. On a `file_system` that is not writable nothing goes on behind the logs, and nothing is written at
    the end.
    """

    def __init__(
        self,
        log_dirs: Sequence[str | Path],
        default_config: LogConfig | None = None,
        time: Time = SYSTEM_TIME,
        scheduler: Scheduler | None = None,
        *,
        cluster_id: str | None = None,
        node_id: int = 1,
        ack_policy: AckPolicy = AckPolicy.NONE,
        producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS,
        intervals: LogIntervals | None = None,
        files: OpenFiles | None = None,
        cleaner: CleanerConfig | None = None,
        recovery_threads: int = 1,
        on_all_offline: Callable[[], None] | None = None,
        file_system: FileSystem = DISK,
    ) -> None:
        self._file_system = file_system
        self._dirs = LogDirectories(log_dirs, cluster_id, node_id, file_system)
        self._default_config = default_config if default_config is not None else LogConfig()
        self._time = time
        self._own_scheduler = scheduler is None
        self._scheduler = scheduler if scheduler is not None else Scheduler("log-manager", time)
        self._ack_policy = ack_policy
        self._producer_id_expiration_ms = producer_id_expiration_ms
        self._intervals = intervals if intervals is not None else LogIntervals()
        self._files = files if files is not None else OpenFiles(_OPEN_FILES)
        self.recovery_threads = recovery_threads
        """Threads that open the logs of each directory after an unclean shutdown."""
        self._on_all_offline = on_all_offline
        # Held while logs are made, deleted and listed; never while one is appended to or read.
        self._lock = threading.RLock()
        self._logs: dict[TopicPartition, UnifiedLog] = {}
        self._started = False
        self._loaded = False
        self._tasks: list[ScheduledTask] = []
        # It takes no lock of ours: whoever waits for it may hold that.
        self.cleaner = None if cleaner is None else LogCleaner(cleaner, self._current_logs, time)
        """The threads that compact logs, None without."""

    @property
    def cluster_id(self) -> str | None:
        """The cluster that the directories belong to; known after `startup`."""
        return self._dirs.cluster_id

    @property
    def log_dirs(self) -> list[LogDirectory]:
        """All directories, also those that are offline."""
        return list(self._dirs.all)

    @property
    def live_log_dirs(self) -> list[LogDirectory]:
        """The directories that are in use."""
        return self._dirs.live

    def find_partitions(self) -> list[FoundPartition]:
        """Lock the directories that are there and look at what is in them; nothing is opened or changed.

        `startup` follows, or `shutdown`, which gives the locks back. Raises `IllegalStateError` if another broker
        uses a directory or two are one, and `InconsistentClusterIdError` if one is another cluster's or node's.
        """
        with self._lock:
            if self._started:
                raise IllegalStateError("The log manager was started already")
            self._started = True
            try:
                return self._dirs.look()
            except BaseException:
                self._abandon()
                raise

    def startup(
        self,
        topic_configs: Callable[[str], LogConfig] | None = None,
        partitions: Sequence[FoundPartition] | None = None,
        deleted: Sequence[FoundPartition] = (),
        remembered: Mapping[Uuid, str] = MappingProxyType({}),
    ) -> None:
        """Open the logs of `partitions`, without which it is all there are, remove the files of those that were
        deleted, and begin the work behind the logs.

        `topic_configs(topic)` gives the settings of a topic's logs. `remembered` says where directories were: one
        that is missing from there now is offline, and not made anew. Raises as `find_partitions` does, which is
        called for None, and `KafkaStorageError` if no directory can be used.
        """
        configs = topic_configs if topic_configs is not None else lambda _topic: self._default_config
        found = partitions if partitions is not None else self.find_partitions()
        with self._lock:
            try:
                self._dirs.make(remembered)
                for doomed in deleted:
                    self._doom(doomed)
                self._load_all(found, configs)
                if not self.live_log_dirs:
                    raise KafkaStorageError(
                        f"No log directory can be used: {self._dirs.all[0].offline_error}"
                    )
            except BaseException:
                self._abandon()
                raise
            self._loaded = True
            for log_dir in self.live_log_dirs:
                log_dir.on_offline = self._look_for_live
        if self._file_system.writable:
            self._tasks = schedule_tasks(self, self._scheduler, self._intervals)
        if self._own_scheduler:
            self._scheduler.startup()
        if self.cleaner is not None:
            self.cleaner.startup()

    def get_log(self, topic_partition: TopicPartition) -> UnifiedLog | None:
        """The partition's log, None if there is none."""
        return self._logs.get(topic_partition)

    def all_logs(self) -> list[UnifiedLog]:
        """Every log, in order of topic and partition."""
        with self._lock:
            return [self._logs[tp] for tp in sorted(self._logs)]

    def use_producer_id_expiration(self, expiration_ms: int) -> None:
        """Have producers forgotten after another time from now on."""
        with self._lock:
            self._producer_id_expiration_ms = expiration_ms
            for log in self._logs.values():
                log.use_producer_id_expiration(expiration_ms)

    def get_or_create_log(
        self,
        topic_partition: TopicPartition,
        topic_id: Uuid | None = None,
        config: LogConfig | None = None,
        directory_id: Uuid | None = None,
    ) -> UnifiedLog:
        """The partition's log, a new one in `directory_id` (None: the one with the fewest logs) if there is none.

        `config` is for a new log. Raises `InconsistentTopicIdError` if the log is that of another topic of
        the same name, and `KafkaStorageError`.
        """
        with self._lock:
            self._check_loaded()
            found = self._logs.get(topic_partition)
            if found is None:
                wanted = directory_id if directory_id is not None else self.choose_directories(1)[0]
                found = self._create_log(
                    topic_partition,
                    self._dirs.by_id(wanted),
                    config if config is not None else self._default_config,
                )
                self._logs[topic_partition] = found
            if topic_id is not None:
                found.assign_topic_id(topic_id)
            return found

    def choose_directories(self, count: int) -> list[Uuid]:
        """The directories for `count` new logs: those with the fewest. Raises `KafkaStorageError`."""
        with self._lock:
            return self._dirs.choose(count, (one.log_dir for one in self._logs.values()))

    def check_directory(self, directory_id: Uuid) -> None:
        """Raise `KafkaStorageError`, which says where it was, if the directory is not in use."""
        self._dirs.by_id(directory_id)

    def directory_places(self) -> dict[Uuid, str]:
        """Paths of the directories that are in use."""
        return self._dirs.places()

    def delete_log(self, topic_partition: TopicPartition) -> None:
        """Take the log away at once; its files are removed after file.delete.delay.ms.

        Nothing happens if there is none. Raises `KafkaStorageError`.
        """
        with self._lock:
            self._check_loaded()
            doomed = self._logs.pop(topic_partition, None)
            if doomed is None:
                return
            log_dir = doomed.log_dir
            with self._not_cleaned(topic_partition):
                doomed.close_for_deletion()
            log_dir.check_online()
            if self.cleaner is not None:
                self.cleaner.manager.forget(log_dir, topic_partition)
            directory = log_dir.path / partition_dir_name(topic_partition)
            renamed = log_dir.path / delete_dir_name(topic_partition)
            try:
                self._file_system.replace(directory, renamed)
                log_dir.sync()
            except OSError as error:
                raise log_dir.fail(f"deleting {topic_partition}", error) from error
        log.info("%s: the log was deleted", topic_partition)
        self._scheduler.schedule_once(
            f"delete-{renamed.name}",
            lambda: self._remove_dir(log_dir, renamed),
            doomed.config.file_delete_delay_ms,
        )

    def update_config(self, topic_partition: TopicPartition, config: LogConfig) -> None:
        """Use other settings for a log, if there is one. A log that is not compacted any more is not cleaned when this
        returns.
        """
        one = self._logs.get(topic_partition)
        if one is not None:
            was_compacted = one.config.compact
            one.update_config(config)
            if was_compacted and not config.compact:
                with self._not_cleaned(topic_partition):
                    pass  # a round that was going on has ended

    def truncate_log(self, topic_partition: TopicPartition, offset: int) -> bool:
        """Cut a log back to end at `offset`; returns True if that changed anything.

        Raises as `UnifiedLog.truncate_to` does, and `UnknownTopicOrPartitionError`.
        """
        one = self._logs.get(topic_partition)
        if one is None:
            raise UnknownTopicOrPartitionError(f"There is no log of {topic_partition}")
        if self.cleaner is None or offset >= one.segment_base_offsets[-1]:
            changed = one.truncate_to(offset)  # the active segment is never cleaned
        else:
            with self._not_cleaned(topic_partition):
                changed = one.truncate_to(offset)
                self.cleaner.manager.truncate_checkpoint(one, one.segment_base_offsets[-1])
        if changed:
            # A recovery that began behind the cut would take what was written there since for flushed.
            self.checkpoint_recovery_points()
        return changed

    def delete_old_segments(self) -> int:
        """Apply the retention of every log that is not compacted; returns how many segments were deleted.

        The others are the cleaner's.
        """
        if self.cleaner is None:
            free = [one for one in self.all_logs() if not one.config.compact]
            return sum(self._for_each("retention", UnifiedLog.delete_old_segments, free))
        with self.cleaner.manager.other_logs() as free:
            return sum(self._for_each("retention", UnifiedLog.delete_old_segments, free))

    def flush_due_logs(self) -> None:
        """Flush the logs whose flush.ms is over."""
        self._for_each("flush", lambda one: one.flusher.flush_if_due(), self.all_logs())

    def remove_expired_producers(self) -> None:
        """Forget the producers of every log that have been idle for too long."""
        self._for_each("producer expiration", UnifiedLog.remove_expired_producers, self.all_logs())

    def checkpoint_recovery_points(self) -> None:
        """Write down how far each log is known to be on disk."""
        self._checkpoint(lambda log_dir: log_dir.recovery_points, lambda one: one.flusher.recovery_point)

    def checkpoint_log_start_offsets(self) -> None:
        """Write down where each log starts, where that is not simply its first segment."""

        def start_offset(one: UnifiedLog) -> int | None:
            moved = one.log_start_offset > one.segment_base_offsets[0]
            return one.log_start_offset if moved else None

        self._checkpoint(lambda log_dir: log_dir.log_start_offsets, start_offset)

    def checkpoint_high_watermarks(self) -> None:
        """Write down up to where each log is known to be on all in-sync replicas."""
        self._checkpoint(lambda log_dir: log_dir.high_watermarks, lambda one: one.high_watermark)

    def shutdown(self) -> None:
        """Flush and close all logs, and leave the marker of a clean shutdown where all went well.

        Idempotent.
        """
        if self.cleaner is not None:
            self.cleaner.shutdown()
        if self._own_scheduler:
            # Not under the lock, which a task that is just running may wait for.
            self._scheduler.shutdown()
        # What is in a log must not be refused because the log was closed sooner than it was forced to disk.
        for log_dir in self.log_dirs:
            log_dir.commits.finish()
        with self._lock:
            if not self._loaded or not self._file_system.writable:
                self._loaded = False
                self._abandon()
                return
            for task in self._tasks:
                task.cancel()
            failed: set[LogDirectory] = set()
            for one in self.all_logs():
                try:
                    if one.log_dir.offline_error is None:
                        one.flusher.flush_rest()
                    one.close()
                except KafkaError as error:
                    log.error("%s: closing failed: %s", one.topic_partition, error)
                    failed.add(one.log_dir)
            self.checkpoint_recovery_points()
            self.checkpoint_log_start_offsets()
            self.checkpoint_high_watermarks()
            for log_dir in self.live_log_dirs:
                if log_dir not in failed:
                    try:
                        log_dir.clean_shutdown.write()
                    except OSError as error:
                        log_dir.fail("writing the clean shutdown marker", error)
            self._loaded = False
            self._logs.clear()
            self._dirs.release()

    def _look_for_live(self) -> None:
        if not self.live_log_dirs and self._on_all_offline is not None:
            self._on_all_offline()

    def _check_loaded(self) -> None:
        if not self._loaded:
            raise IllegalStateError("The log manager is not running")

    def _doom(self, found: FoundPartition) -> None:
        log.info("Removing %s, whose topic was deleted", found.path)
        try:
            self._file_system.replace(found.path, found.log_dir.path / delete_dir_name(found.topic_partition))
            found.log_dir.sync()
        except OSError as error:
            found.log_dir.fail(f"removing {found.path.name}", error)

    def _load_all(self, found: Sequence[FoundPartition], configs: Callable[[str], LogConfig]) -> None:
        """Open logs in the directories that are in use. Raises as `LogLoading.run` does."""
        loading = LogLoading(
            lambda one, options: load_log(
                one.path, one.topic_partition, one.log_dir, self._scheduler, self._time, options
            ),
            self.recovery_threads,
        )
        try:
            loading.run(
                {log_dir: [one for one in found if one.log_dir is log_dir] for log_dir in self.live_log_dirs},
                {
                    topic: self._load_options(configs(topic))
                    for topic in {one.topic_partition.topic for one in found}
                },
            )
        finally:
            self._logs.update(loading.logs)

    def _load_options(self, config: LogConfig) -> LoadOptions:
        return LoadOptions(
            config,
            ack_policy=self._ack_policy,
            producer_id_expiration_ms=self._producer_id_expiration_ms,
            files=self._files,
        )

    def _create_log(
        self, topic_partition: TopicPartition, log_dir: LogDirectory, config: LogConfig
    ) -> UnifiedLog:
        directory = log_dir.path / partition_dir_name(topic_partition)
        try:
            self._file_system.make_directory(directory)
            options = attrs.evolve(self._load_options(config), clean=True)
            made = load_log(directory, topic_partition, log_dir, self._scheduler, self._time, options)
        except OSError as error:
            raise log_dir.fail(f"making the log of {topic_partition}", error) from error
        log.debug("%s: made a log in %s", topic_partition, log_dir.path)
        return made

    def _abandon(self) -> None:
        """A start that failed leaves nothing open and writes nothing."""
        for one in self._logs.values():
            one.close_for_deletion()
        self._logs.clear()
        self._dirs.release()

    def _current_logs(self) -> list[UnifiedLog]:
        return list(self._logs.values())

    @contextmanager
    def _not_cleaned(self, topic_partition: TopicPartition) -> Iterator[None]:
        """Return a context in which the cleaner leaves the partition alone."""
        if self.cleaner is None:
            yield
        else:
            with self.cleaner.manager.paused(topic_partition):
                yield

    def _for_each(self, what: str, action: Callable[[UnifiedLog], T], logs: Iterable[UnifiedLog]) -> list[T]:
        done = []
        for one in logs:
            if one.log_dir.offline_error is None:
                try:
                    done.append(action(one))
                except KafkaError as error:
                    # One log that was deleted or failed meanwhile must not keep the others from their turn.
                    log.warning("%s: %s failed: %s", one.topic_partition, what, error)
        return done

    def _checkpoint(
        self,
        checkpoint: Callable[[LogDirectory], OffsetCheckpoint],
        offset: Callable[[UnifiedLog], int | None],
    ) -> None:
        with self._lock:
            if not self._loaded:
                return  # a task that waited for the lock while everything was closed
            for log_dir in self.live_log_dirs:
                offsets = {
                    one.topic_partition: value
                    for one in self._logs.values()
                    if one.log_dir is log_dir and (value := offset(one)) is not None
                }
                try:
                    checkpoint(log_dir).write_if_changed(offsets)
                except OSError as error:
                    log_dir.fail("writing a checkpoint", error)

    def _remove_dir(self, log_dir: LogDirectory, directory: Path) -> None:
        try:
            self._file_system.remove_tree(directory)
        except FileNotFoundError:
            pass
        except OSError as error:
            log_dir.fail(f"removing {directory.name}", error)
