"""Partition: a log with what its leader adds to it: the epoch, and a count of the bytes that were appended."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from kclient.broker.log.producer_state import AppendOrigin
from kclient.broker.log.unified_log import FetchIsolation, LogAppendInfo, UnifiedLog
from kclient.broker.metrics.topic_counts import TopicCounts
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import (
    FencedLeaderEpochError,
    NotEnoughReplicasError,
    UnknownLeaderEpochError,
)
from kclient.network.transport import Buffer
from kclient.record.memory_records import Batch, iter_batches

NO_EPOCH = -1
_READ_BYTES = 1 << 20
_READ_TO_THE_END = -1


class Partition:
    """A partition that this broker leads. Thread-safe: the log has its own lock.

    Each start of the broker is a new leadership, in an epoch that the metadata has and that no leader had before. A
    client that read records which a crash then took back can find that out by asking where its epoch ended
    (KIP-320).
    """

    __slots__ = ("_counter_lock", "appended_bytes", "counts", "leader_epoch", "log", "topic_id", "tp")

    def __init__(self, log: UnifiedLog, topic_id: Uuid, leader_epoch: int) -> None:
        self.log = log
        self.tp: TopicPartition = log.topic_partition
        self.topic_id = topic_id
        self.leader_epoch = leader_epoch
        self._advance_high_watermark()
        self._counter_lock = threading.Lock()
        self.appended_bytes = 0
        """Bytes appended since the broker started; only differences mean anything."""
        self.counts = TopicCounts()

    def append(
        self, records: Buffer, origin: AppendOrigin, required_acks: int, *, wait: bool = True
    ) -> LogAppendInfo:
        """Append batches, as `UnifiedLog.append_as_leader` does.

        Raises NotEnoughReplicasError and what that raises.
        """
        if required_acks == -1 and self.log.config.min_insync_replicas > 1:
            raise NotEnoughReplicasError(
                f"{self.tp.topic} has min.insync.replicas {self.log.config.min_insync_replicas}, but one replica"
            )
        info = self.log.append_as_leader(records, self.leader_epoch, origin=origin, wait=wait)
        self._advance_high_watermark()
        with self._counter_lock:
            self.appended_bytes += info.size_bytes
            counts = self.counts
            counts.produce_requests += 1
            counts.messages_in += info.last_offset - info.first_offset + 1
            counts.bytes_in += len(records)
        return info

    def batches(self) -> Iterator[Batch]:
        """Yield all batches there are, also those that are not visible yet. Raises KafkaStorageError."""
        offset, end = self.log.log_start_offset, self.log.log_end_offset
        while offset < end:
            info = self.log.read(offset, _READ_BYTES, isolation=FetchIsolation.LOG_END)
            if not info.records:
                break
            for batch in iter_batches(info.content()):
                yield batch
                offset = batch.last_offset + 1

    def count_rejected(self, size: int, *, unexpectedly: bool) -> None:
        """Count an append that failed, of `size` bytes if it was too large."""
        with self._counter_lock:
            self.counts.produce_requests += 1
            self.counts.failed_produce_requests += unexpectedly
            self.counts.bytes_rejected += size

    def count_fetch(self, size: int, *, failed: bool) -> None:
        """Count a fetch that was answered with `size` bytes."""
        with self._counter_lock:
            counts = self.counts
            counts.fetch_requests += 1
            counts.bytes_out += size
            if failed:
                counts.failed_fetch_requests += 1

    def check_leader_epoch(self, current_leader_epoch: int) -> None:
        """Raise FencedLeaderEpochError or UnknownLeaderEpochError if a client's idea of the epoch is not ours."""
        if current_leader_epoch in {NO_EPOCH, self.leader_epoch}:
            return
        if current_leader_epoch < self.leader_epoch:
            raise FencedLeaderEpochError(
                f"{self.tp} is led in epoch {self.leader_epoch}; the request knows only {current_leader_epoch}"
            )
        raise UnknownLeaderEpochError(
            f"{self.tp} is led in epoch {self.leader_epoch}; the request speaks of {current_leader_epoch}"
        )

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest epoch not above `epoch` and where it ends; (-1, -1) if that is not known."""
        end_offset = self.log.log_end_offset
        if epoch == self.leader_epoch:
            return epoch, end_offset
        if 0 <= epoch < self.leader_epoch:
            # Epochs in which nothing was written are not in the log: they ended where the next one began.
            latest = self.log.latest_epoch
            if latest is None:
                return epoch, end_offset
            epoch = min(epoch, latest)
        return self.log.end_offset_for_epoch(epoch)

    def delete_records(self, before_offset: int) -> int:
        """Let the log begin at `before_offset` (-1: the high watermark); returns the new start.

        Raises OffsetOutOfRangeError and KafkaStorageError.
        """
        if before_offset == _READ_TO_THE_END:
            before_offset = self.log.high_watermark
        return self.log.delete_records_before(before_offset)

    def _advance_high_watermark(self) -> None:
        """Move the high watermark to where all in-sync replicas are: this one is the only one."""
        self.log.advance_high_watermark(self.log.log_end)
