"""Opening all logs of all directories at a start."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

import attrs

from kclient.broker.log.files import DELETE_DIR_SUFFIX
from kclient.broker.log.loader import LoadOptions
from kclient.broker.log.log_directory import FoundPartition, LogDirectory
from kclient.broker.log.unified_log import UnifiedLog
from kclient.common.topic_partition import TopicPartition
from kclient.errors import IllegalStateError, KafkaStorageError

log = logging.getLogger(__name__)

PROGRESS_S = 5.0
"""Time between two lines that say how many logs are left."""


class LogLoading:
    """One opening of all logs: all directories at the same time, each by `threads` after an unclean shutdown.

    After a clean one nothing is read of a log but its end, and one thread is enough. Used by one thread, which waits.
    """

    def __init__(self, load: Callable[[FoundPartition, LoadOptions], UnifiedLog], threads: int) -> None:
        """`load` opens a log, on any thread, and raises as `load_log` does."""
        self.logs: dict[TopicPartition, UnifiedLog] = {}
        """The logs that were opened; also if the opening of others fails."""
        self._load = load
        self._threads = threads
        self._given_up = threading.Event()

    def run(
        self,
        found: Mapping[LogDirectory, Sequence[FoundPartition]],
        options: Mapping[str, LoadOptions],
    ) -> None:
        """Open the logs of each directory; one whose disk fails goes offline.

        `options` are those of each topic, without what checkpoints say. Raises IllegalStateError for a partition that
        is in two directories, and KafkaStorageError if there are not enough descriptors.
        """
        _refuse_twins(found)
        pools: list[ThreadPoolExecutor] = []
        try:
            pending: dict[Future[None], LogDirectory] = {}
            for log_dir, partitions in found.items():
                opening = _begin(log_dir)
                if opening is None:
                    continue
                pool = ThreadPoolExecutor(
                    1 if opening.clean else self._threads, f"log-opener-{log_dir.path.name}"
                )
                pools.append(pool)
                for one in partitions:
                    of_log = opening.options(one, options[one.topic_partition.topic])
                    pending[pool.submit(self._open, one, of_log)] = log_dir
            self._wait(pending)
        finally:
            # Nobody wants the rest after an error. Otherwise there is none.
            self._given_up.set()
            for pool in pools:
                pool.shutdown(cancel_futures=True)
        for log_dir in found:
            count = sum(one.log_dir is log_dir for one in self.logs.values())
            if count and log_dir.offline_error is None:
                log.info("Opened %d logs in %s", count, log_dir.path)

    def _wait(self, pending: dict[Future[None], LogDirectory]) -> None:
        """Wait for all, and say now and then how many are left. Raises what opening one raised."""
        left = set(pending)
        while left:
            done, left = wait(left, PROGRESS_S)
            for future in done:
                future.result()
            for log_dir in {pending[future] for future in left}:
                count = sum(pending[future] is log_dir for future in left)
                log.info("%s: %d logs are left to be opened", log_dir.path, count)

    def _open(self, found: FoundPartition, options: LoadOptions) -> None:
        log_dir = found.log_dir
        if self._given_up.is_set() or log_dir.offline_error is not None:
            return
        try:
            self.logs[found.topic_partition] = self._load(found, options)
        except OSError as error:
            log_dir.fail_to_open("loading its logs", error)
        except KafkaStorageError:
            if log_dir.offline_error is None:
                raise


@attrs.frozen
class _Opening:
    """The checkpoints of a directory, and whether it was closed well."""

    clean: bool
    recovery_points: Mapping[TopicPartition, int]
    start_offsets: Mapping[TopicPartition, int]
    high_watermarks: Mapping[TopicPartition, int]

    def options(self, found: FoundPartition, of_topic: LoadOptions) -> LoadOptions:
        """Return the options of one log."""
        tp = found.topic_partition
        return attrs.evolve(
            of_topic,
            clean=self.clean,
            log_start_offset=self.start_offsets.get(tp, 0),
            recovery_point=self.recovery_points.get(tp, 0),
            high_watermark=self.high_watermarks.get(tp, 0),
            topic_id=found.topic_id,
        )


def _begin(log_dir: LogDirectory) -> _Opening | None:
    """Remove what is left of deleted logs, and read what the directory says; None if its disk fails."""
    try:
        files = log_dir.file_system
        for leftover in files.list(log_dir.path):
            if leftover.name.endswith(DELETE_DIR_SUFFIX):
                files.remove_tree(leftover)
        # Where nothing is repaired the last segments are looked at whatever their owner said.
        clean = log_dir.clean_shutdown.take() and files.writable
        opening = _Opening(
            clean,
            log_dir.read_checkpoint(log_dir.recovery_points),
            log_dir.read_checkpoint(log_dir.log_start_offsets),
            log_dir.read_checkpoint(log_dir.high_watermarks),
        )
    except OSError as error:
        log_dir.fail_to_open("loading its logs", error)
        return None
    log.info("Opening logs in %s after %s shutdown", log_dir.path, "a clean" if clean else "an unclean")
    return opening


def _refuse_twins(found: Mapping[LogDirectory, Sequence[FoundPartition]]) -> None:
    places: dict[TopicPartition, FoundPartition] = {}
    for partitions in found.values():
        for one in partitions:
            other = places.setdefault(one.topic_partition, one)
            if other is not one:
                raise IllegalStateError(
                    f"{one.topic_partition} is in {other.log_dir.path} and in {one.log_dir.path}: "
                    "remove the one that is out of date"
                )
