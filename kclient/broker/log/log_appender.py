"""LogAppender: the steps of an append that need the log's state, and rolling to a new segment."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs

from kclient.broker.log.config import LOG_APPEND_TIME
from kclient.broker.log.epoch_cache import LeaderEpochCache
from kclient.broker.log.files import once_only
from kclient.broker.log.local_log import LocalLog
from kclient.broker.log.log_types import LogAppendInfo
from kclient.broker.log.producer_replay import apply_batch, complete_transactions
from kclient.broker.log.producer_state import (
    NO_PRODUCER_ID,
    AppendOrigin,
    BatchMetadata,
    CompletedTxn,
    ProducerAppendInfo,
)
from kclient.broker.log.producer_state_manager import ProducerStateManager
from kclient.broker.log.segment import LogSegment
from kclient.broker.log.time_index import NO_TIMESTAMP
from kclient.broker.log.validator import ValidRecords
from kclient.errors import InvalidRecordError, RecordBatchTooLargeError
from kclient.record.batch import RecordBatch
from kclient.utils.time import Time


@attrs.define(eq=False)
class LogAppender:
    """Appends checked batches. Guarded by the log's lock; methods raise OSError when the disk fails."""

    _local: LocalLog
    _producers: ProducerStateManager
    _epochs: LeaderEpochCache
    _time: Time
    _on_roll: Callable[[], None]

    def append_as_leader(
        self, valid: ValidRecords, leader_epoch: int, origin: AppendOrigin, log_start_offset: int
    ) -> LogAppendInfo:
        """Give batches their offsets, check them against their producers' state, and write them.

        Raises what `UnifiedLog.append_as_leader` documents for the log's state; nothing has changed then.
        """
        local, batches = self._local, valid.batches
        size = len(valid.data)
        if origin is AppendOrigin.CLIENT:
            duplicate = self._find_duplicate(batches[0])
            if duplicate is not None:
                return self._duplicate_info(duplicate, log_start_offset)
        if size > local.config.segment_bytes:
            raise RecordBatchTooLargeError(
                f"{local.topic_partition}: {size} bytes of batches are more than "
                f"segment.bytes ({local.config.segment_bytes})"
            )
        by_broker = local.config.message_timestamp_type == LOG_APPEND_TIME
        append_time_ms = self._time.wall_ms() if by_broker else NO_TIMESTAMP
        first_offset = next_offset = local.log_end_offset
        max_timestamp_ms = NO_TIMESTAMP
        for batch in batches:
            batch.set_base_offset(next_offset)
            batch.set_partition_leader_epoch(leader_epoch)
            if by_broker:
                batch.set_log_append_time(append_time_ms)
            max_timestamp_ms = max(max_timestamp_ms, batch.max_timestamp_ms)
            next_offset = batch.last_offset + 1
        self._write(valid, max_timestamp_ms, leader_epoch, origin)
        return LogAppendInfo(
            first_offset,
            next_offset - 1,
            max_timestamp_ms,
            append_time_ms,
            log_start_offset,
            is_duplicate=False,
            size_bytes=size,
        )

    def append_as_follower(
        self, valid: ValidRecords, leader_epoch: int, log_start_offset: int
    ) -> LogAppendInfo:
        """Write batches with the offsets and epochs that their leader gave them.

        Raises what `UnifiedLog.append_as_follower` documents for the log's state; nothing has changed then.
        """
        local, batches = self._local, valid.batches
        first_offset = next_offset = local.log_end_offset
        max_timestamp_ms = NO_TIMESTAMP
        count = size = 0
        for batch in batches:
            if batch.partition_leader_epoch > leader_epoch:
                break
            if batch.base_offset < next_offset or batch.last_offset < batch.base_offset:
                raise InvalidRecordError(
                    f"{local.topic_partition}: a batch of offsets {batch.base_offset} to {batch.last_offset} cannot "
                    f"follow offset {next_offset - 1}"
                )
            first_offset = first_offset if count else batch.base_offset
            next_offset = batch.last_offset + 1
            max_timestamp_ms = max(max_timestamp_ms, batch.max_timestamp_ms)
            count, size = count + 1, size + batch.size_in_bytes
        for part in _parts(valid, count, local.config.segment_bytes):
            newest_ms = max(batch.max_timestamp_ms for batch in part.batches)
            self._write(part, newest_ms, None, AppendOrigin.REPLICATION)
        return LogAppendInfo(
            first_offset,
            next_offset - 1,
            max_timestamp_ms,
            NO_TIMESTAMP,
            log_start_offset,
            is_duplicate=False,
            size_bytes=size,
        )

    def _write(
        self, valid: ValidRecords, max_timestamp_ms: int, leader_epoch: int | None, origin: AppendOrigin
    ) -> None:
        """Write batches that have their offsets and epochs, whoever gave them, and bring all state past them.

        `leader_epoch` is that of all of them, None if each may have another.
        """
        local = self._local
        drafts, completed = self._draft_producer_states(valid.batches, origin)
        last_offset = valid.batches[-1].last_offset
        if local.segments.active.should_roll(local.config, len(valid.data), max_timestamp_ms, last_offset):
            self.roll()
        # Before the batches: an epoch that begins where the log ends does no harm should their write fail.
        if leader_epoch is not None:
            self._epochs.assign(leader_epoch, local.log_end_offset)
        else:
            for batch in valid.batches:
                self._epochs.assign_newer(batch.partition_leader_epoch, batch.base_offset)
        local.append(valid.data, valid.batches)
        for draft in drafts.values():
            self._producers.update(draft)
        if completed:
            with once_only():  # their markers are in the log already
                complete_transactions(self._producers, local.segments.active.txn_index, completed)
        self._producers.map_end_offset = local.log_end_offset

    def roll(self) -> LogSegment:
        """Begin a new segment at the log's end, with a snapshot of the producers' state there."""
        self._producers.map_end_offset = self._local.log_end_offset
        self._producers.take_snapshot()
        segment = self._local.roll()
        self._on_roll()
        return segment

    def _find_duplicate(self, batch: RecordBatch) -> BatchMetadata | None:
        producer_id = batch.producer_id
        if producer_id == NO_PRODUCER_ID:
            return None
        entry = self._producers.producers.get(producer_id)
        if entry is None:
            return None
        return entry.find_duplicate(batch.producer_epoch, batch.base_sequence, batch.last_sequence)

    def _duplicate_info(self, batch: BatchMetadata, log_start_offset: int) -> LogAppendInfo:
        by_broker = self._local.config.message_timestamp_type == LOG_APPEND_TIME
        return LogAppendInfo(
            batch.first_offset,
            batch.last_offset,
            batch.timestamp_ms,
            batch.timestamp_ms if by_broker else NO_TIMESTAMP,
            log_start_offset,
            is_duplicate=True,
            size_bytes=0,
        )

    def _draft_producer_states(
        self, batches: list[RecordBatch], origin: AppendOrigin
    ) -> tuple[dict[int, ProducerAppendInfo], list[CompletedTxn]]:
        drafts: dict[int, ProducerAppendInfo] = {}
        completed = []
        for batch in batches:
            producer_id = batch.producer_id
            if producer_id == NO_PRODUCER_ID:
                continue
            draft = drafts.get(producer_id)
            if draft is None:
                draft = drafts[producer_id] = self._producers.prepare_update(producer_id, origin)
            txn = apply_batch(draft, batch)
            if txn is not None:
                completed.append(txn)
        return drafts, completed


def _parts(valid: ValidRecords, count: int, segment_bytes: int) -> Iterator[ValidRecords]:
    """Yield the first `count` batches in pieces that fit into a segment; a batch that alone does not is one by itself.

    A leader's limits need not be those of its followers, and what it has they must have.
    """
    begin = end = 0
    part: list[RecordBatch] = []
    for batch in valid.batches[:count]:
        if part and end - begin + batch.size_in_bytes > segment_bytes:
            yield ValidRecords(valid.data[begin:end], part)
            begin, part = end, []
        part.append(batch)
        end += batch.size_in_bytes
    if part:
        yield ValidRecords(valid.data[begin:end], part)
