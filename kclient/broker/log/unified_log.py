"""UnifiedLog: a partition's log as the rest of the broker sees it."""

from __future__ import annotations

import logging
from collections.abc import Callable

from kclient.broker.log.checkpoints import write_topic_id
from kclient.broker.log.compaction import LogCompaction
from kclient.broker.log.config import LogConfig
from kclient.broker.log.durability import AckPolicy
from kclient.broker.log.epoch_cache import LeaderEpochCache
from kclient.broker.log.files import once_only
from kclient.broker.log.local_log import LocalLog
from kclient.broker.log.log_appender import LogAppender
from kclient.broker.log.log_directory import LogDirectory
from kclient.broker.log.log_flusher import LogFlusher
from kclient.broker.log.log_guard import LogGuard
from kclient.broker.log.log_reader import LogReader
from kclient.broker.log.log_types import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    FetchDataInfo,
    FetchIsolation,
    LogAppendInfo,
    LogOffsetMetadata,
)
from kclient.broker.log.producer_replay import rebuild_producer_state
from kclient.broker.log.producer_state import AppendOrigin, ProducerStateEntry
from kclient.broker.log.producer_state_manager import ProducerStateManager
from kclient.broker.log.retention import LogRetention
from kclient.broker.log.time_index import NO_TIMESTAMP
from kclient.broker.log.validator import validate_records
from kclient.broker.timer.scheduler import Scheduler
from kclient.common.uuid import Uuid
from kclient.errors import InconsistentTopicIdError, InvalidRequestError, OffsetOutOfRangeError
from kclient.utils.time import Time

__all__ = [
    "AppendOrigin",
    "FetchDataInfo",
    "FetchIsolation",
    "LogAppendInfo",
    "LogOffsetMetadata",
    "UnifiedLog",
]

log = logging.getLogger(__name__)


class UnifiedLog:
    """The log of one partition: appends, reads, lookups, retention. Thread-safe.

    One lock guards the state. Appends write under it; reads take it only to find and pin their segment and
    read without it, as does flushing. An append does not make its records visible: consumers read up to the
    high watermark, which `advance_high_watermark` moves.

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
        high_watermark: int,
        topic_id: Uuid | None,
        ack_policy: AckPolicy = AckPolicy.NONE,
    ) -> None:
        """Called by the loader, which has opened and recovered the parts."""
        self.topic_partition = local.topic_partition
        self.log_dir = log_dir
        """The directory that the log's own directory is in."""
        self.topic_id = topic_id
        """The topic's identifier, None if the log's directory names none. Changed by `assign_topic_id`."""
        self._local = local
        self._producers = producer_state
        self._epochs = epochs
        self._time = time
        self._guard = LogGuard(local.topic_partition, log_dir, local.files)
        self._lock = self._guard.lock
        self.flusher = LogFlusher(
            local,
            self._guard,
            log_dir.commits,
            scheduler,
            time,
            ack_policy=ack_policy,
            recovery_point=recovery_point,
        )
        """The part that knows how much is on disk, and gets more there."""
        self._appender = LogAppender(local, producer_state, epochs, time, self.flusher.flush_soon)
        self._reader = LogReader(local, self._guard)
        self._retention = LogRetention(
            local, producer_state, epochs, scheduler, self._appender.roll, log_start_offset
        )
        self.compaction = LogCompaction(local, self._guard, producer_state, self._retention, time)
        """The part that gives the cleaner segments and takes what it makes of them."""
        self._high_watermark = LogOffsetMetadata(log_start_offset)
        self.advance_high_watermark(LogOffsetMetadata(high_watermark))

    def __repr__(self) -> str:
        return f"UnifiedLog({self.topic_partition}, {self.log_start_offset} to {self._local.log_end_offset})"

    @property
    def config(self) -> LogConfig:
        """The settings in force."""
        return self._local.config

    @property
    def log_start_offset(self) -> int:
        """The first offset that can be read."""
        return self._retention.log_start_offset

    @property
    def log_end_offset(self) -> int:
        """The offset that the next record will get."""
        return self._local.log_end_offset

    @property
    def high_watermark(self) -> int:
        """Below it every in-sync replica has the records, so that no change of leader takes them back."""
        return self._high_watermark.offset

    @property
    def last_stable_offset(self) -> int:
        """Below it every transaction is decided, and that for good; never above the high watermark."""
        return self._readable_end(FetchIsolation.TXN_COMMITTED).offset

    @property
    def log_end(self) -> LogOffsetMetadata:
        """The log's end and its place."""
        with self._lock:
            active = self._local.segments.active
            return LogOffsetMetadata(self._local.log_end_offset, active.base_offset, active.size)

    def advance_high_watermark(self, to: LogOffsetMetadata) -> bool:
        """Move the high watermark up, at most to the log's end; True if it moved.

        It never goes back but where the log is truncated. A leader says what all in-sync replicas have, a follower
        what its leader told it.
        """
        with self._lock:
            end = self._local.log_end_offset
            moved = LogOffsetMetadata(end) if to.offset > end else to
            if moved.offset <= self._high_watermark.offset:
                return False
            self._set_high_watermark(moved)
            return True

    def readable_end(self, isolation: FetchIsolation) -> int:
        """The offset at which reading with this isolation ends."""
        if isolation is FetchIsolation.HIGH_WATERMARK:
            return self._high_watermark.offset
        return self._readable_end(isolation).offset

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

    def open_transactions(self) -> list[ProducerStateEntry]:
        """The states of the producers whose transactions are open, the oldest transaction first."""
        with self._lock:
            return self._producers.open_transactions()

    def assign_topic_id(self, topic_id: Uuid) -> None:
        """Write the topic's identifier into the log's directory.

        Raises `InconsistentTopicIdError` if the log is another topic's.
        """
        with self._lock, self._guard.disk("writing the partition's metadata"):
            if self.topic_id is None:
                write_topic_id(
                    self._local.directory,
                    topic_id,
                    durable=not self._local.is_unused,
                    file_system=self._local.file_system,
                )
                self.topic_id = topic_id
            elif self.topic_id != topic_id:
                raise InconsistentTopicIdError(
                    f"{self.topic_partition} has topic id {self.topic_id} on disk, not {topic_id}"
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
        `wait` sooner, and `flusher.commit` tells. The high watermark stays where it is.

        Raises `CorruptRecordError`, `RecordTooLargeError`, `RecordBatchTooLargeError`, `InvalidRecordError` and
        `InvalidTimestampError` (with `record_errors`), `OutOfOrderSequenceError`, `InvalidProducerEpochError`,
        `InvalidTxnStateError` or `KafkaStorageError`; nothing is written then.
        """
        view = memoryview(records)
        if view.readonly:
            view = memoryview(bytearray(view))
        self.log_dir.check_online()
        # Outside the lock: checksums and codecs take most of the time and need nothing of the log's state.
        valid = validate_records(view, self._local.config, origin, self.topic_partition, self._time.wall_ms())
        return self._append(
            lambda: self._appender.append_as_leader(
                valid, leader_epoch, origin, self._retention.log_start_offset
            ),
            wait=wait,
        )

    def append_as_follower(
        self, records: bytes | bytearray | memoryview, leader_epoch: int, *, wait: bool = True
    ) -> LogAppendInfo:
        """Write batches as a leader has them: offsets and epochs stay, what it checked is not checked again.

        Offsets may be missing among them, as compaction leaves it. Batches of an epoch above `leader_epoch`, that of
        the leader they were asked of, are left out with all behind them: another leader wrote them meanwhile
        (KAFKA-18723). `wait` as for `append_as_leader`.

        Raises `CorruptRecordError` for a batch that does not match its checksum, `InvalidRecordError` for offsets that
        do not rise or begin below the log's end, or `KafkaStorageError`; nothing is written then.
        """
        self.log_dir.check_online()
        origin = AppendOrigin.REPLICATION
        valid = validate_records(
            memoryview(records), self._local.config, origin, self.topic_partition, self._time.wall_ms()
        )
        return self._append(
            lambda: self._appender.append_as_follower(valid, leader_epoch, self._retention.log_start_offset),
            wait=wait,
        )

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
            self._guard.check_usable()
            log_start, log_end = self._retention.log_start_offset, self._local.log_end_offset
            if not log_start <= start_offset <= log_end:
                raise OffsetOutOfRangeError(
                    f"{self.topic_partition}: offset {start_offset} is not between {log_start} and {log_end}"
                )
            high_watermark, stable = self.high_watermark, self.last_stable_offset
            limit = self._readable_end(isolation)
            committed = isolation is FetchIsolation.TXN_COMMITTED
            pinned = self._reader.pin(start_offset, limit.offset, committed=committed)
        found = None
        if pinned is not None:
            found = self._reader.read(
                pinned,
                start_offset,
                limit,
                max_bytes,
                log_end=log_end,
                min_one_batch=min_one_batch,
                inline_bytes=inline_bytes,
            )
        data, aborted = (memoryview(b""), [] if committed else None) if found is None else found
        return FetchDataInfo(start_offset, data, high_watermark, stable, log_start, aborted)

    def offset_for_timestamp(self, timestamp_ms: int) -> tuple[int, int, int | None] | None:
        """The first record that is not before a time: (timestamp, offset, leader epoch), None if there is
        none.

        Negative numbers ask for the log's end (-1), its start (-2 and -4), or the record with the greatest
        timestamp (-3). Raises `InvalidRequestError` for others.
        """
        with self._lock:
            self._guard.check_usable()
            if timestamp_ms == LATEST_TIMESTAMP:
                return NO_TIMESTAMP, self._local.log_end_offset, self._epochs.latest_epoch
            if timestamp_ms in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
                start = self.log_start_offset
                return NO_TIMESTAMP, start, self._epochs.epoch_for_offset(start)
            if timestamp_ms == LATEST_TIERED_TIMESTAMP:
                return None
            if timestamp_ms < MAX_TIMESTAMP:
                raise InvalidRequestError(f"There is no offset for the timestamp {timestamp_ms}")
            return self._reader.offset_for_timestamp(timestamp_ms, self.log_start_offset)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest epoch up to `epoch` and the offset at which it ended, (-1, -1) if it cannot be told."""
        with self._lock:
            return self._epochs.end_offset_for(epoch, self._local.log_end_offset)

    def delete_records_before(self, offset: int) -> int:
        """Make `offset` the log's first; returns the log start offset, which never goes back.

        Raises `OffsetOutOfRangeError` beyond the high watermark. Whole segments below are deleted by
        retention.
        """
        with self._lock, self._guard.disk("moving the log's start"):
            self._guard.check_writable()
            if not 0 <= offset <= self.high_watermark:
                raise OffsetOutOfRangeError(
                    f"{self.topic_partition}: cannot delete before {offset}, the log ends at {self.high_watermark}"
                )
            self._retention.move_start(offset, "records were deleted")
            return self.log_start_offset

    def delete_old_segments(self) -> int:
        """Delete segments that are too old, too many, or below the log's start; returns how many."""
        with self._lock, self._guard.disk("deleting old segments"):
            self._guard.check_writable()
            return self._retention.delete_old_segments(self._time.wall_ms(), self.high_watermark)

    def truncate_to(self, offset: int) -> bool:
        """Cut the log back to end at `offset`, with the whole batch that holds it; True if that changed anything.

        The log begins anew there if that is before its first segment. The checkpoint of the recovery point is the
        caller's to write. Raises `InvalidRequestError` and `KafkaStorageError`.
        """
        if offset < 0:
            raise InvalidRequestError(f"Cannot truncate {self.topic_partition} to the offset {offset}")
        with self._lock, self._guard.disk("truncating"), once_only():
            self._guard.check_writable()
            local = self._local
            if offset >= local.log_end_offset:
                return False
            self._retention.truncate_to(offset)
            self.flusher.truncated_to(offset)
            self._epochs.truncate_from_end(offset)
            rebuild_producer_state(
                self._producers, local.segments, self.log_start_offset, offset, self._time.wall_ms()
            )
            if self.high_watermark > offset:
                log.warning(
                    "%s: truncated to offset %d, below its high watermark %d",
                    self.topic_partition, offset, self.high_watermark,
                )  # fmt: skip
            self._set_high_watermark(LogOffsetMetadata(min(self.high_watermark, offset)))
            log.info("%s: truncated to offset %d", self.topic_partition, offset)
            return True

    def roll(self) -> int:
        """Begin a new segment; returns its base offset, which is the log's end."""
        with self._lock, self._guard.disk("rolling"):
            self._guard.check_writable()
            return self._appender.roll().base_offset

    def use_producer_id_expiration(self, expiration_ms: int) -> None:
        """Have producers forgotten after another time from now on."""
        with self._lock:
            self._producers.expiration_ms = expiration_ms

    def remove_expired_producers(self) -> None:
        """Forget producers that have been idle for too long."""
        with self._lock:
            self._producers.remove_expired(self._time.wall_ms())

    def close(self) -> None:
        """Snapshot the producers' state and close all files. Idempotent."""
        with self._lock:
            if self._guard.closed:
                return
            self._guard.closed = True
            if self.log_dir.offline_error is not None:
                for segment in self._local.segments:
                    segment.close_files()
                return
            with self._guard.disk("closing"):
                self._producers.map_end_offset = self._local.log_end_offset
                self._producers.take_snapshot()
                self._local.close()

    def close_for_deletion(self) -> None:
        """Close all files without writing anything: they are about to be removed. Idempotent."""
        with self._lock:
            self._guard.closed = True
            for segment in self._local.segments:
                segment.close_files(removing=True)

    def _append(self, write: Callable[[], LogAppendInfo], *, wait: bool) -> LogAppendInfo:
        """Call `write` under the lock, and have what it wrote on disk as soon as the policy asks."""
        local, flusher = self._local, self.flusher
        with self._lock:
            self._guard.check_writable()
            try:
                info = write()
                if flusher.syncs_appends:
                    flusher.sync_append()
            except OSError as error:
                raise self._guard.failure("appending", error) from error
            flush_due = local.log_end_offset - flusher.recovery_point >= local.config.flush_messages
        if wait and flusher.commits_later:
            # A duplicate waits too: the batch that it repeats may not be on disk yet.
            flusher.commit.await_durable(info.last_offset + 1)
        if flush_due:
            flusher.flush()
        return info

    def _set_high_watermark(self, to: LogOffsetMetadata) -> None:
        self._high_watermark = to
        self._producers.on_high_watermark_updated(to.offset)

    def _readable_end(self, isolation: FetchIsolation) -> LogOffsetMetadata:
        if isolation is FetchIsolation.LOG_END:
            return self.log_end
        with self._lock:
            high_watermark = self._high_watermark
            if isolation is FetchIsolation.TXN_COMMITTED:
                first_unstable = self._producers.first_unstable_offset
                if first_unstable is not None and first_unstable < high_watermark.offset:
                    return LogOffsetMetadata(max(first_unstable, self.log_start_offset))
            return high_watermark
