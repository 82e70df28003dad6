"""UnifiedLog: a partition's log as the rest of the broker sees it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from kclient.broker.log import retention
from kclient.broker.log.checkpoints import PARTITION_METADATA, PartitionMetadataFile
from kclient.broker.log.config import LogConfig
from kclient.broker.log.durability import AckPolicy, Done, GroupCommit
from kclient.broker.log.epoch_cache import LeaderEpochCache
from kclient.broker.log.files import once_only
from kclient.broker.log.local_log import LocalLog
from kclient.broker.log.log_appender import LogAppender
from kclient.broker.log.log_directory import LogDirectory
from kclient.broker.log.log_lookup import collect_aborted, search_timestamp
from kclient.broker.log.log_types import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    FetchDataInfo,
    FetchIsolation,
    LogAppendInfo,
)
from kclient.broker.log.producer_replay import rebuild_producer_state
from kclient.broker.log.producer_state import AppendOrigin, ProducerStateEntry
from kclient.broker.log.producer_state_manager import ProducerStateManager
from kclient.broker.log.record_slice import RecordSlice
from kclient.broker.log.segment import LogSegment
from kclient.broker.log.segment_remover import SegmentRemover
from kclient.broker.log.time_index import NO_TIMESTAMP
from kclient.broker.log.validator import validate_records
from kclient.broker.timer.scheduler import Scheduler
from kclient.common.uuid import Uuid
from kclient.errors import (
    InconsistentTopicIdError,
    InvalidRequestError,
    KafkaStorageError,
    OffsetOutOfRangeError,
)
from kclient.record.open_files import OUT_OF_DESCRIPTORS
from kclient.utils.time import Time

__all__ = ["AppendOrigin", "FetchDataInfo", "FetchIsolation", "LogAppendInfo", "UnifiedLog"]

log = logging.getLogger(__name__)


class UnifiedLog:
    """The log of one partition: appends, reads, lookups, retention. Thread-safe.

    One lock guards the state. Appends write under it; reads take it only to find and pin their segment and
    read without it, as does flushing. This broker is the only replica, so the high watermark is the log's
    end.

    A method that has to do with the disk raises `KafkaStorageError` when the disk fails; the log's directory
    is offline then, and all its logs refuse to work.
    """

    def __init__(
        self,
        local: LocalLog,
        log_dir: LogDirectory,
        producer_state: ProducerStateManager,
        epochs: LeaderEpochCache,
        scheduler: Scheduler,
        time: Time,
        *,
        log_start_offset: int,
        recovery_point: int,
        topic_id: Uuid | None,
        ack_policy: AckPolicy = AckPolicy.NONE,
    ) -> None:
        """Called by the loader, which has opened and recovered the parts."""
        self.topic_partition = local.topic_partition
        self._local = local
        self._log_dir = log_dir
        self._producers = producer_state
        self._epochs = epochs
        self._scheduler = scheduler
        self._time = time
        self._topic_id = topic_id
        self._ack_policy = ack_policy
        self._lock = threading.RLock()
        self._log_start_offset = log_start_offset
        self._recovery_point = recovery_point
        self._synced_offset = recovery_point
        self._last_flush_ms = time.monotonic_ms()
        self._group_commit = GroupCommit(log_dir.commits, self._sync_data)
        self._appender = LogAppender(local, producer_state, epochs, time, self._flush_soon)
        self._remover = SegmentRemover(local, producer_state, scheduler)
        self._flush_scheduled = False
        self._closed = False

    def __repr__(self) -> str:
        return f"UnifiedLog({self.topic_partition}, {self._log_start_offset} to {self._local.log_end_offset})"

    @property
    def config(self) -> LogConfig:
        """The settings in force."""
        return self._local.config

    @property
    def log_dir(self) -> LogDirectory:
        """The directory that the log's own directory is in."""
        return self._log_dir

    @property
    def topic_id(self) -> Uuid | None:
        """The topic's identifier, None if the log's directory names none."""
        return self._topic_id

    @property
    def log_start_offset(self) -> int:
        """The first offset that can be read."""
        return self._log_start_offset

    @property
    def log_end_offset(self) -> int:
        """The offset that the next record will get."""
        return self._local.log_end_offset

    @property
    def high_watermark(self) -> int:
        """Below it every in-sync replica has the records; with one replica the log's end."""
        return self._local.log_end_offset

    @property
    def last_stable_offset(self) -> int:
        """Below it every transaction is decided."""
        with self._lock:
            first_unstable = self._producers.first_unstable_offset
            return self.high_watermark if first_unstable is None else first_unstable

    @property
    def recovery_point(self) -> int:
        """Below it everything is on disk."""
        return self._recovery_point

    @property
    def size(self) -> int:
        """Bytes of all batches."""
        with self._lock:
            return self._local.size

    @property
    def segment_base_offsets(self) -> list[int]:
        """The base offsets of the segments, in order."""
        with self._lock:
            return self._local.segments.base_offsets

    @property
    def latest_epoch(self) -> int | None:
        """The newest leader epoch in the log, None if there is none."""
        with self._lock:
            return self._epochs.latest_epoch

    def producer_states(self) -> list[ProducerStateEntry]:
        """The state of every active producer, as of now."""
        with self._lock:
            return [entry.copy() for entry in self._producers.producers.values()]

    def assign_topic_id(self, topic_id: Uuid) -> None:
        """Write the topic's identifier into the log's directory.

        Raises `InconsistentTopicIdError` if the log is another topic's.
        """
        with self._lock, self._disk("writing the partition's metadata"):
            if self._topic_id is None:
                PartitionMetadataFile(self._local.directory / PARTITION_METADATA).write(topic_id)
                self._topic_id = topic_id
            elif self._topic_id != topic_id:
                raise InconsistentTopicIdError(
                    f"{self.topic_partition} has topic id {self._topic_id} on disk, not {topic_id}"
                )

    def update_config(self, config: LogConfig) -> None:
        """Work with other settings from now on."""
        with self._lock:
            self._local.config = config

    def append_as_leader(
        self,
        records: bytes | bytearray | memoryview,
        leader_epoch: int,
        *,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        wait: bool = True,
    ) -> LogAppendInfo:
        """Check a batch (several, if not from a client), give it the next offsets and write it.

        A writable buffer is changed in place: offsets, epoch, and timestamps if the topic's are the broker's.
        It is the caller's again when this returns, which is when the batch is as durable as the policy asks; without
        `wait` sooner, and `when_durable` tells.

        Raises `CorruptRecordError`, `RecordTooLargeError`, `RecordBatchTooLargeError`, `InvalidRecordError` and
        `InvalidTimestampError` (with `record_errors`), `OutOfOrderSequenceError`, `InvalidProducerEpochError`,
        `InvalidTxnStateError` or `KafkaStorageError`; nothing is written then.
        """
        view = memoryview(records)
        if view.readonly:
            view = memoryview(bytearray(view))
        self._log_dir.check_online()
        # Outside the lock: checksums and codecs take most of the time and need nothing of the log's state.
        valid = validate_records(view, self.config, origin, self.topic_partition, self._time.wall_ms())
        with self._lock:
            self._check_usable()
            with self._disk("appending"):
                info = self._appender.append(valid, leader_epoch, origin, self._log_start_offset)
                if self._ack_policy is AckPolicy.ALWAYS:
                    self._local.segments.active.records.flush()
                    self._local.sync_directory()
            flush_due = self._local.log_end_offset - self._recovery_point >= self.config.flush_messages
        if wait and self.commits_later:
            # A duplicate waits too: the batch that it repeats may not be on disk yet.
            self._group_commit.await_durable(info.last_offset + 1)
        if flush_due:
            self.flush()
        return info

    @property
    def commits_later(self) -> bool:
        """True if what is appended has to be waited for until it is as durable as the policy asks."""
        return self._ack_policy is AckPolicy.BATCH

    def when_durable(self, end_offset: int, done: Done) -> None:
        """Call `done`, here or on another thread, when all below `end_offset` is on disk; with what failed, if so."""
        self._group_commit.when_durable(end_offset, done)

    def read(
        self,
        start_offset: int,
        max_bytes: int,
        *,
        isolation: FetchIsolation = FetchIsolation.HIGH_WATERMARK,
        min_one_batch: bool = True,
        inline_bytes: int | None = None,
    ) -> FetchDataInfo:
        """The batches from `start_offset` on, up to `max_bytes`; with `min_one_batch` the first one whole
        anyway. If they are more than `inline_bytes` they are given as a `RecordSlice`, to be read later.

        Raises `OffsetOutOfRangeError` for an offset outside the log and `CorruptRecordError` for damaged
        files.
        """
        with self._lock:
            self._check_usable()
            log_start, log_end = self._log_start_offset, self._local.log_end_offset
            stable = self.last_stable_offset
            if not log_start <= start_offset <= log_end:
                raise OffsetOutOfRangeError(
                    f"{self.topic_partition}: offset {start_offset} is not between {log_start} and {log_end}"
                )
            committed = isolation is FetchIsolation.TXN_COMMITTED
            limit = stable if committed else log_end
            segment = self._local.segments.floor(start_offset) if start_offset < limit else None
            if segment is not None:
                segment.pin()
                max_position = segment.size
        position = 0
        data: memoryview | RecordSlice = memoryview(b"")
        while segment is not None:
            following = None
            with self._pinned([segment], "reading"):
                if limit < log_end:
                    end = segment.position_of(limit)
                    max_position = max_position if end is None else min(end, max_position)
                found = segment.read(
                    start_offset,
                    max_bytes,
                    max_position,
                    min_one_batch=min_one_batch,
                    inline_bytes=inline_bytes,
                )
            if found is not None:
                position, data = found
                break
            # Compaction may have removed the segment's last offsets: the next batch is the next segment's
            # first.
            with self._lock:
                following = self._local.segments.higher(segment.base_offset)
                if following is not None and following.base_offset < limit:
                    following.pin()
                    max_position = following.size
                else:
                    following = None
            segment = following
        aborted = None
        if committed:
            aborted = []
            if segment is not None and data:
                aborted = self._aborted(start_offset, segment, position + len(data))
        return FetchDataInfo(start_offset, data, log_end, stable, log_start, aborted)

    def offset_for_timestamp(self, timestamp_ms: int) -> tuple[int, int, int | None] | None:
        """The first record that is not before a time: (timestamp, offset, leader epoch), None if there is
        none.

        Negative numbers ask for the log's end (-1), its start (-2 and -4), or the record with the greatest
        timestamp (-3). Raises `InvalidRequestError` for others.
        """
        with self._lock:
            self._check_usable()
            if timestamp_ms == LATEST_TIMESTAMP:
                return NO_TIMESTAMP, self._local.log_end_offset, self._epochs.latest_epoch
            if timestamp_ms in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
                start = self._log_start_offset
                return NO_TIMESTAMP, start, self._epochs.epoch_for_offset(start)
            if timestamp_ms == LATEST_TIERED_TIMESTAMP:
                return None
            if timestamp_ms < MAX_TIMESTAMP:
                raise InvalidRequestError(f"There is no offset for the timestamp {timestamp_ms}")
            segments = self._pin_from(self._log_start_offset)
        with self._pinned(segments, "looking up a time"):
            return search_timestamp(segments, timestamp_ms, self._log_start_offset)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest epoch up to `epoch` and the offset at which it ended, (-1, -1) if it cannot be told."""
        with self._lock:
            return self._epochs.end_offset_for(epoch, self._local.log_end_offset)

    def delete_records_before(self, offset: int) -> int:
        """Make `offset` the log's first; returns the log start offset, which never goes back.

        Raises `OffsetOutOfRangeError` beyond the high watermark. Whole segments below are deleted by
        retention.
        """
        with self._lock, self._disk("moving the log's start"):
            self._check_usable()
            if not 0 <= offset <= self.high_watermark:
                raise OffsetOutOfRangeError(
                    f"{self.topic_partition}: cannot delete before {offset}, the log ends at {self.high_watermark}"
                )
            self._move_start(offset, "records were deleted")
            return self._log_start_offset

    def delete_old_segments(self) -> int:
        """Delete segments that are too old, too many, or below the log's start; returns how many."""
        with self._lock, self._disk("deleting old segments"):
            self._check_usable()
            count = 0
            if self.config.delete:
                old = retention.expired(self._local.segments, self.config, self._time.wall_ms())
                count += self._delete_segments(old, "older than retention.ms")
                surplus = retention.surplus(self._local.segments, self.config)
                count += self._delete_segments(surplus, "more than retention.bytes")
            below = retention.below(self._local.segments, self._log_start_offset)
            return count + self._delete_segments(below, "below the log's start")

    def truncate_to(self, offset: int) -> bool:
        """Cut the log back so that it ends at `offset`; whether that changed anything."""
        if offset < 0:
            raise InvalidRequestError(f"Cannot truncate {self.topic_partition} to the offset {offset}")
        with self._lock, self._disk("truncating"), once_only():
            self._check_usable()
            local = self._local
            if offset >= local.log_end_offset:
                return False
            self._remover.truncate_to(offset)
            self._log_start_offset = min(self._log_start_offset, offset)
            self._recovery_point = min(self._recovery_point, offset)
            self._synced_offset = min(self._synced_offset, offset)
            self._group_commit.truncate_to(offset)
            self._epochs.truncate_from_end(offset)
            rebuild_producer_state(
                self._producers, local.segments, self._log_start_offset, offset, self._time.wall_ms()
            )
            log.info("%s: truncated to offset %d", self.topic_partition, offset)
            return True

    def flush(self) -> None:
        """Force everything written so far to disk, and move the recovery point."""
        with self._lock:
            self._check_usable()
            end_offset = self._local.log_end_offset
            segments = self._local.segments.from_offset(self._recovery_point)
            with self._disk("writing indexes"):
                for segment in segments:
                    segment.write_indexes()
            self._pin_from(self._recovery_point)
        with self._pinned(segments, "flushing"):
            for segment in segments:
                segment.flush()
            self._local.sync_directory()
        with self._lock:
            # The log may have been truncated meanwhile.
            self._recovery_point = max(self._recovery_point, min(end_offset, self._local.log_end_offset))
            self._last_flush_ms = self._time.monotonic_ms()

    def flush_if_due(self) -> None:
        """Flush if something is unflushed for longer than flush.ms."""
        unflushed = self._local.log_end_offset > self._recovery_point
        if unflushed and self._time.monotonic_ms() - self._last_flush_ms >= self.config.flush_ms:
            self.flush()

    def roll(self) -> int:
        """Begin a new segment; returns its base offset, which is the log's end."""
        with self._lock, self._disk("rolling"):
            self._check_usable()
            return self._appender.roll().base_offset

    def remove_expired_producers(self) -> None:
        """Forget producers that have been idle for a day."""
        with self._lock:
            self._producers.remove_expired(self._time.wall_ms())

    def close(self) -> None:
        """Snapshot the producers' state and close all files. Idempotent."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._log_dir.offline_error is not None:
                for segment in self._local.segments:
                    segment.close_files()
                return
            with self._disk("closing"):
                self._producers.map_end_offset = self._local.log_end_offset
                self._producers.take_snapshot()
                self._local.close()

    def close_for_deletion(self) -> None:
        """Close all files without writing anything: they are about to be removed. Idempotent."""
        with self._lock:
            self._closed = True
            for segment in self._local.segments:
                segment.close_files(removing=True)

    @contextmanager
    def _disk(self, what: str) -> Iterator[None]:
        """An OSError in the block takes the directory offline, as `LogDirectory.fail` does."""
        try:
            yield
        except OSError as error:
            if self._closed:
                # The log was deleted meanwhile: its files have other names or are gone, and the disk is not
                # to blame.
                raise KafkaStorageError(f"The log of {self.topic_partition} is closed") from error
            if error.errno in OUT_OF_DESCRIPTORS:
                self._local.files.close_unused()
            raise self._log_dir.fail(f"{self.topic_partition}: {what}", error) from error

    @contextmanager
    def _pinned(self, segments: Sequence[LogSegment], what: str) -> Iterator[None]:
        """The block uses the files of `segments`, which were pinned under the lock, without the lock."""
        try:
            with self._disk(what):
                yield
        finally:
            with self._lock:
                for segment in segments:
                    segment.unpin()

    def _pin_from(self, offset: int) -> list[LogSegment]:
        segments = self._local.segments.from_offset(offset)
        for segment in segments:
            segment.pin()
        return segments

    def _check_usable(self) -> None:
        self._log_dir.check_online()
        if self._closed:
            raise KafkaStorageError(f"The log of {self.topic_partition} is closed")

    def _flush_soon(self) -> None:
        # A segment that was rolled is flushed in the background, which moves the recovery point past it. One
        # flush does for all segments rolled until it begins.
        if not self._flush_scheduled:
            self._flush_scheduled = True
            self._scheduler.schedule_once(f"flush-{self.topic_partition}", self._flush_if_open)

    def _flush_if_open(self) -> None:
        with self._lock:
            self._flush_scheduled = False
            usable = not self._closed and self._log_dir.offline_error is None
        if usable:
            self.flush()

    def _sync_data(self) -> int:
        """Force the batches written so far to disk, not the indexes; returns the end they reach to."""
        with self._lock:
            self._check_usable()
            end_offset = self._local.log_end_offset
            segments = self._pin_from(self._synced_offset)
        with self._pinned(segments, "syncing an append"):
            for segment in segments:
                segment.records.flush()
            self._local.sync_directory()
        with self._lock:
            self._synced_offset = max(self._synced_offset, min(end_offset, self._local.log_end_offset))
        return end_offset

    def _move_start(self, offset: int, why: str) -> None:
        if offset > self._log_start_offset:
            self._log_start_offset = offset
            self._epochs.truncate_from_start(offset)
            self._producers.on_log_start_offset_incremented(offset)
            log.info("%s: the log starts at offset %d: %s", self.topic_partition, offset, why)

    def _delete_segments(self, segments: list[LogSegment], why: str) -> int:
        if segments:
            if len(segments) == len(self._local.segments):
                self._appender.roll()
            self._remover.remove(segments)
            self._move_start(self._local.segments.first.base_offset, f"segments deleted, {why}")
        return len(segments)

    def _aborted(self, start_offset: int, segment: LogSegment, end_position: int) -> list[tuple[int, int]]:
        with self._lock:
            segments = self._local.segments.from_offset(segment.base_offset)
            upper = segment.offset_index.upper_bound(end_position)
            if upper is None:
                upper = segments[1].base_offset if len(segments) > 1 else self._local.log_end_offset
        with self._disk("reading aborted transactions"):
            return collect_aborted(segments, start_offset, upper)
