"""Partition: a log with its leader's view: epochs, watermark, and how much was appended."""

from __future__ import annotations

import threading

from kclient.broker.log.config import LogConfig
from kclient.broker.log.producer_state import AppendOrigin
from kclient.broker.log.unified_log import FetchDataInfo, FetchIsolation, LogAppendInfo, UnifiedLog
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import (
    FencedLeaderEpochError,
    NotEnoughReplicasError,
    OffsetOutOfRangeError,
    UnknownLeaderEpochError,
)
from kclient.network.transport import Buffer

NO_EPOCH = -1
_READ_TO_THE_END = -1


class Partition:
    """A partition that this broker leads. Thread-safe: the log has its own lock.

    Each start of the broker is a new leadership, so its epoch is one more than the last one in the log. A
    client that read records which a crash then took back can find that out by asking where its epoch ended
    (KIP-320).
    """

    __slots__ = ("_counter_lock", "_log", "appended_bytes", "leader_epoch", "topic_id", "tp")

    def __init__(self, log: UnifiedLog, topic_id: Uuid) -> None:
        self._log = log
        self.tp: TopicPartition = log.topic_partition
        self.topic_id = topic_id
        latest = log.latest_epoch
        self.leader_epoch = 0 if latest is None else latest + 1
        self._counter_lock = threading.Lock()
        self.appended_bytes = 0
        """Bytes appended since the broker started; only differences mean anything."""

    @property
    def log(self) -> UnifiedLog:
        """The log itself."""
        return self._log

    @property
    def high_watermark(self) -> int:
        """Consumers see records below this offset."""
        return self._log.high_watermark

    @property
    def log_start_offset(self) -> int:
        """The first offset that can be read."""
        return self._log.log_start_offset

    def append(
        self, records: Buffer, origin: AppendOrigin, required_acks: int, *, wait: bool = True
    ) -> LogAppendInfo:
        """Append batches, as `UnifiedLog.append_as_leader` does.

        Raises NotEnoughReplicasError and what that raises.
        """
        if required_acks == -1 and self._log.config.min_insync_replicas > 1:
            raise NotEnoughReplicasError(
                f"{self.tp.topic} has min.insync.replicas {self._log.config.min_insync_replicas}, but one replica"
            )
        info = self._log.append_as_leader(records, self.leader_epoch, origin=origin, wait=wait)
        with self._counter_lock:
            self.appended_bytes += info.size_bytes
        return info

    def read(
        self,
        offset: int,
        max_bytes: int,
        isolation: FetchIsolation,
        *,
        min_one_batch: bool,
        inline_bytes: int | None = None,
    ) -> FetchDataInfo:
        """Read batches from `offset` on, as `UnifiedLog.read` does.

        Raises OffsetOutOfRangeError, KafkaStorageError and CorruptRecordError.
        """
        return self._log.read(
            offset, max_bytes, isolation=isolation, min_one_batch=min_one_batch, inline_bytes=inline_bytes
        )

    def readable_end(self, isolation: FetchIsolation) -> int:
        """The offset at which reading with this isolation ends."""
        if isolation is FetchIsolation.TXN_COMMITTED:
            return self._log.last_stable_offset
        return self._log.high_watermark

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
        if epoch == self.leader_epoch:
            return epoch, self._log.log_end_offset
        return self._log.end_offset_for_epoch(epoch)

    def delete_records(self, before_offset: int) -> int:
        """Let the log begin at `before_offset` (-1: the high watermark); returns the new start.

        Raises OffsetOutOfRangeError and KafkaStorageError.
        """
        if before_offset == _READ_TO_THE_END:
            before_offset = self._log.high_watermark
        if not 0 <= before_offset <= self._log.high_watermark:
            raise OffsetOutOfRangeError(
                f"Records of {self.tp} can be deleted up to {self._log.high_watermark}, not up to {before_offset}"
            )
        self._log.delete_records_before(before_offset)
        return self._log.log_start_offset

    def update_config(self, config: LogConfig) -> None:
        """Use other settings from now on."""
        self._log.update_config(config)
