"""Opening a log: finishing what a crash interrupted, and cutting off what was never whole."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path

import attrs

from kclient.broker.log.abstract_index import CorruptIndexError
from kclient.broker.log.checkpoints import (
    LEADER_EPOCH_CHECKPOINT,
    EpochCheckpoint,
    MalformedCheckpointError,
    read_topic_id,
)
from kclient.broker.log.config import LogConfig
from kclient.broker.log.durability import AckPolicy
from kclient.broker.log.epoch_cache import LeaderEpochCache
from kclient.broker.log.file_system import FileSystem, ReadOnlyFileSystem
from kclient.broker.log.files import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TMP_SUFFIX,
    TXN_INDEX_SUFFIX,
    parse_offset_name,
)
from kclient.broker.log.local_log import LocalLog
from kclient.broker.log.log_directory import LogDirectory
from kclient.broker.log.producer_replay import rebuild_producer_state, replay_batch
from kclient.broker.log.producer_state_manager import PRODUCER_ID_EXPIRATION_MS, ProducerStateManager
from kclient.broker.log.segment import LogSegment
from kclient.broker.log.transaction_index import AbortedTxn, TransactionIndex
from kclient.broker.log.unified_log import UnifiedLog
from kclient.broker.timer.scheduler import Scheduler
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import CorruptRecordError
from kclient.record.batch import RecordBatch
from kclient.record.constants import CONTROL_BIT
from kclient.record.open_files import OpenFiles
from kclient.utils.time import Time

log = logging.getLogger(__name__)

_OPEN_FILES = 64  # of a log that shares them with no others

_SEGMENT_SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)


@attrs.frozen
class LoadOptions:
    """Options for opening a log, besides its directory. Immutable.

    `clean` is True if the last shutdown was clean: nothing is recovered then. `log_start_offset`, `recovery_point`
    and `high_watermark` are the checkpointed ones, lower bounds all of them. `topic_id` is what the directory names,
    None if that was not read yet.
    """

    config: LogConfig
    clean: bool = False
    log_start_offset: int = 0
    recovery_point: int = 0
    high_watermark: int = 0
    topic_id: Uuid | None = None
    ack_policy: AckPolicy = AckPolicy.NONE
    producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS
    files: OpenFiles = attrs.field(factory=lambda: OpenFiles(_OPEN_FILES))


def load_log(
    directory: Path,
    topic_partition: TopicPartition,
    log_dir: LogDirectory,
    scheduler: Scheduler,
    time: Time,
    options: LoadOptions,
) -> UnifiedLog:
    """Open the log in `directory`, which exists but may be empty.

    After an unclean shutdown everything from the recovery point on is checked: the log ends at the first byte
    that is not part of a whole, valid batch, and what came after is deleted. Raises OSError.
    """
    loader = _LogLoader(directory, topic_partition, log_dir.file_system, time, options)
    try:
        loader.load()
    except BaseException:
        for segment in loader.local.segments:
            segment.close_files()
        raise
    topic_id = options.topic_id
    if topic_id is None:
        try:
            topic_id = read_topic_id(directory, log_dir.file_system)
        except MalformedCheckpointError as error:
            log.warning("%s: its topic id is written anew: %s", topic_partition, error)
    return UnifiedLog(
        loader.local,
        log_dir,
        loader.producers,
        loader.epochs,
        scheduler,
        time,
        log_start_offset=loader.log_start_offset,
        recovery_point=loader.recovery_point,
        high_watermark=options.high_watermark,
        topic_id=topic_id,
        ack_policy=options.ack_policy,
    )


class _LogLoader:
    """One loading. Used by one thread."""

    def __init__(
        self,
        directory: Path,
        topic_partition: TopicPartition,
        file_system: FileSystem,
        time: Time,
        options: LoadOptions,
    ) -> None:
        self._directory = directory
        self._topic_partition = topic_partition
        self._file_system = file_system
        self._time = time
        self._options = options
        self.local = LocalLog(topic_partition, directory, options.config, time, options.files, file_system)
        self.producers = ProducerStateManager(
            topic_partition,
            directory,
            producer_id_expiration_ms=options.producer_id_expiration_ms,
            file_system=file_system,
        )
        checkpoint = EpochCheckpoint(directory / LEADER_EPOCH_CHECKPOINT, file_system)
        self.epochs = LeaderEpochCache(topic_partition, checkpoint)
        self.log_start_offset = options.log_start_offset
        self.recovery_point = options.recovery_point

    def load(self) -> None:
        """All steps, in order. Raises OSError."""
        self._finish_swaps(self._remove_leftovers())
        self._open_segments()
        made = not self.local.segments
        if made:
            self.local.open_segment(self.log_start_offset)
        segments = self.local.segments
        self.log_start_offset = max(self.log_start_offset, segments.first.base_offset)
        self.producers.remove_stray_snapshots(segments.base_offsets)
        clean = self._options.clean and self._find_end()
        if not clean:
            self._recover()
        if self.local.log_end_offset < self.log_start_offset:
            clean = False
            self._start_anew()
        self._load_epochs()
        end_offset = self.local.log_end_offset
        if self.producers.map_end_offset != end_offset:
            self._rebuild_producers(end_offset)
        self.recovery_point = min(self.recovery_point, end_offset)
        self.local.opened(made=made, clean=clean)

    def _remove_leftovers(self) -> list[Path]:
        """Remove what was being deleted or written; returns the files of finished compactions (`.swap`)."""
        cleaned_bases = []
        swaps: list[tuple[int, Path]] = []
        for path in sorted(self._file_system.list(self._directory)):
            parsed = parse_offset_name(path.name)
            if path.name.endswith((DELETED_SUFFIX, TMP_SUFFIX)):
                self._file_system.remove(path)
            elif parsed is not None and path.name.endswith(CLEANED_SUFFIX):
                cleaned_bases.append(parsed[0])
                self._file_system.remove(path)
            elif parsed is not None and path.name.endswith(SWAP_SUFFIX):
                swaps.append((parsed[0], path))
        # A .cleaned file at or before a .swap file means that not all results of that compaction had become
        # .swap, so the segments that they were to replace are all still there.
        lowest_cleaned = min(cleaned_bases, default=None)
        finished = []
        for base, path in swaps:
            if lowest_cleaned is not None and base >= lowest_cleaned:
                self._file_system.remove(path)
            else:
                finished.append(path)
        return finished

    def _finish_swaps(self, swaps: list[Path]) -> None:
        """Let the results of a compaction take the place of the segments that they were made from."""
        begins, ends = [], []
        for path in swaps:
            parsed = parse_offset_name(path.name)
            if parsed is None or parsed[1] != LOG_SUFFIX + SWAP_SUFFIX:
                continue
            begins.append(parsed[0])
            # Also where nothing was left: other files of the segment in its place may still be there.
            end = parsed[0] + 1
            with self._file_system.open_records(path, self._options.files) as records:
                for header in records.batch_headers():
                    end = header.next_offset
            ends.append(end)
        if begins:
            for path in self._file_system.list(self._directory):
                parsed = parse_offset_name(path.name)
                if (
                    parsed is not None
                    and parsed[1] in _SEGMENT_SUFFIXES
                    and min(begins) <= parsed[0] < max(ends)
                ):
                    self._file_system.remove(path)
            # Before the signs of a swap go, or a power failure could bring the old segments back beside the new.
            self._file_system.sync_directory(self._directory)
        for path in swaps:
            self._file_system.replace(path, path.with_name(path.name.removesuffix(SWAP_SUFFIX)))

    def _open_segments(self) -> None:
        parsed = [(path, parse_offset_name(path.name)) for path in self._file_system.list(self._directory)]
        names = [(path, name) for path, name in parsed if name is not None]
        bases = {name[0] for _, name in names if name[1] == LOG_SUFFIX}
        for path, (base, suffix) in names:
            if suffix in _SEGMENT_SUFFIXES and base not in bases:
                log.warning("%s: removing %s, which has no log", self._topic_partition, path.name)
                self._file_system.remove(path)
        for base in sorted(bases):
            self.local.open_segment(base)
        for segment in self.local.segments:
            sealed = segment is not self.local.segments.active
            segment.offset_index.sealed = segment.time_index.sealed = sealed

    def _find_end(self) -> bool:
        """Take the log's end from the active segment; False if a clean shutdown left damage all the same."""
        active = self.local.segments.active
        for segment in self.local.segments:
            try:
                self._load_aborted(segment)
                if segment is active:
                    self.local.log_end_offset = active.next_offset()
            except (CorruptIndexError, CorruptRecordError) as error:
                log.warning("%s: recovering after a clean shutdown: %s", self._topic_partition, error)
                self.recovery_point = min(self.recovery_point, segment.base_offset)
                return False
        self.recovery_point = self.local.log_end_offset
        return True

    def _load_transactions(self) -> None:
        """Load the transaction indexes before the recovery point, and move that to the first that is damaged.

        A reader finds each of them in memory from then on, also after retention has removed the file.
        """
        for segment in self.local.segments:
            if segment.base_offset >= self.recovery_point:
                return
            try:
                self._load_aborted(segment)
            except CorruptIndexError as error:
                log.warning("%s: recovering more than was not flushed: %s", self._topic_partition, error)
                self.recovery_point = segment.base_offset

    def _load_aborted(self, segment: LogSegment) -> None:
        """Load the transaction index of a segment. Raises `CorruptIndexError`.

        Other indexes can be built anew by their segment alone, this one needs the producers' state. Nor can it be seen
        to be missing, as most segments have none; but it may be where another index is, which every segment has. In a
        directory of somebody else, who may have left out a file, it is looked for in the segment before a reader is
        told that nothing was aborted.
        """
        index = segment.txn_index
        if segment.size and not self._file_system.exists(segment.offset_index.path):
            log.warning("%s: %s is missing", self._topic_partition, segment.offset_index.path.name)
            index.reset()
            self._find_aborted(segment, index)
        elif segment.size and not self._file_system.writable and not self._file_system.exists(index.path):
            index.find_with(partial(self._look_for_aborted, segment))
        else:
            index.load()

    def _look_for_aborted(self, segment: LogSegment) -> list[AbortedTxn]:
        """Return the aborted transactions of a segment without an index of them, by its markers."""
        try:
            if not any(header.attributes & CONTROL_BIT for header in segment.records.batch_headers()):
                return []
        except CorruptRecordError as error:
            log.warning("%s: its aborted transactions are not all known: %s", self._topic_partition, error)
        index = TransactionIndex(segment.txn_index.path, ReadOnlyFileSystem())
        self._find_aborted(segment, index)
        if index.entries:
            log.warning(
                "%s: %s is missing, and is made of the log",
                self._topic_partition,
                segment.txn_index.path.name,
            )
        return index.entries

    def _find_aborted(self, segment: LogSegment, index: TransactionIndex) -> None:
        """Put the aborted transactions of a segment into its index."""
        # A state for this alone, that leaves the snapshots as they are.
        state = ProducerStateManager(self._topic_partition, self._directory, file_system=ReadOnlyFileSystem())
        base = segment.base_offset
        try:
            rebuild_producer_state(
                state, self.local.segments, self.log_start_offset, base, self._time.wall_ms()
            )
            for _, batch in segment.batches():
                replay_batch(state, batch, index)
        except CorruptRecordError as error:
            log.warning("%s: its aborted transactions are not all known: %s", self._topic_partition, error)

    def _recover(self) -> None:
        """Check everything from the recovery point on, and end the log where it is not whole."""
        segments = self.local.segments
        self._load_transactions()
        unflushed = segments.from_offset(self.recovery_point)
        self._rebuild_producers(unflushed[0].base_offset)
        for index, segment in enumerate(unflushed):
            cut = segment.recover(lambda batch, segment=segment: self._visit(segment, batch))  # type: ignore[misc]
            self.local.log_end_offset = max(self.producers.map_end_offset, segment.base_offset)
            log.info(
                "%s: recovered segment %d up to offset %d, %d bytes cut off",
                self._topic_partition, segment.base_offset, self.local.log_end_offset, cut,
            )  # fmt: skip
            # Of each, or the next recovery would read all of them again to know their producers.
            self.producers.take_snapshot()
            if cut and index + 1 < len(unflushed):
                self._drop(unflushed[index + 1 :])
                break
        for segment in unflushed:
            if segment.base_offset in segments and segment is not segments.active:
                segment.become_inactive()

    def _visit(self, segment: LogSegment, batch: RecordBatch) -> None:
        replay_batch(self.producers, batch, segment.txn_index)
        if batch.partition_leader_epoch >= 0:
            self.epochs.assign_newer(batch.partition_leader_epoch, batch.base_offset)

    def _drop(self, segments: list[LogSegment]) -> None:
        for segment in segments[::-1]:
            log.warning(
                "%s: deleting segment %d after the end of the log", self._topic_partition, segment.base_offset
            )
            self.local.segments.remove(segment.base_offset)
            segment.close_files()
            segment.delete_files()

    def _start_anew(self) -> None:
        """The log ends before its start, as after a disk lost data: what is left was deleted by its owner."""
        start = self.log_start_offset
        log.warning(
            "%s: ends at %d, before its start %d: all segments are deleted",
            self._topic_partition, self.local.log_end_offset, start,
        )  # fmt: skip
        self._drop(list(self.local.segments))
        self.producers.truncate_fully_and_start_at(start)
        self.local.log_end_offset = start
        self.local.open_segment(start)

    def _load_epochs(self) -> None:
        if self.epochs.damaged:
            found = [
                (header.partition_leader_epoch, header.base_offset)
                for segment in self.local.segments
                for header in segment.records.batch_headers()
            ]
            self.epochs.rebuild(found)
        self.epochs.truncate_from_end(self.local.log_end_offset)
        self.epochs.truncate_from_start(self.log_start_offset)

    def _rebuild_producers(self, end_offset: int) -> None:
        try:
            rebuild_producer_state(
                self.producers, self.local.segments, self.log_start_offset, end_offset, self._time.wall_ms()
            )
        except CorruptRecordError as error:
            # Damage below the recovery point: the records stay, for readers to see what is wrong with them.
            log.warning("%s: the state of its producers is incomplete: %s", self._topic_partition, error)
            self.producers.map_end_offset = end_offset
