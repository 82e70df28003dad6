"""State of one producer in a log: its epoch, its last batches, its open transaction (KIP-98)."""

from __future__ import annotations

from collections import deque
from enum import Enum

import attrs

from kclient.common.topic_partition import TopicPartition
from kclient.errors import (
    InvalidProducerEpochError,
    InvalidTxnStateError,
    OutOfOrderSequenceError,
    TransactionCoordinatorFencedError,
)
from kclient.record.batch import RecordBatch
from kclient.record.control import ControlRecordType, EndTransactionMarker

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1

BATCHES_TO_RETAIN = 5
"""The number of batches that a producer may have in flight, hence the most that a retry can repeat."""

_SEQUENCES = 2**31


class AppendOrigin(Enum):
    """The origin of an append, which decides what has to be checked."""

    REPLICATION = "replication"
    """Records that a leader checked already: another replica, or the log itself being read again."""
    COORDINATOR = "coordinator"
    """The broker's own records: control records are allowed."""
    CLIENT = "client"
    """A producer, which is not trusted."""


@attrs.frozen
class BatchMetadata:
    """One batch of a producer. Immutable."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int

    @property
    def first_sequence(self) -> int:
        """The sequence of the first record; sequences wrap around at 2^31."""
        return (self.last_sequence - self.offset_delta) % _SEQUENCES

    @property
    def first_offset(self) -> int:
        """The offset of the first record."""
        return self.last_offset - self.offset_delta


@attrs.frozen
class CompletedTxn:
    """A transaction that a marker at `last_offset` ended. Immutable."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


@attrs.define(eq=False)
class ProducerStateEntry:
    """The state of one producer. Guarded by the log's lock."""

    producer_id: int
    producer_epoch: int = NO_PRODUCER_EPOCH
    coordinator_epoch: int = -1
    last_timestamp_ms: int = -1
    current_txn_first_offset: int | None = None
    batches: deque[BatchMetadata] = attrs.field(factory=lambda: deque(maxlen=BATCHES_TO_RETAIN))

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record, -1 if the epoch has written none."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        """The offset of the last data record, -1 if the epoch has written none."""
        return self.batches[-1].last_offset if self.batches else -1

    def add_batch(self, epoch: int, batch: BatchMetadata) -> None:
        """Note a batch written in `epoch`."""
        self.set_epoch(epoch)
        self.batches.append(batch)
        self.last_timestamp_ms = batch.timestamp_ms

    def set_epoch(self, epoch: int) -> None:
        """A new epoch starts with no batches."""
        if epoch != self.producer_epoch:
            self.batches.clear()
            self.producer_epoch = epoch

    def find_duplicate(self, epoch: int, first_sequence: int, last_sequence: int) -> BatchMetadata | None:
        """The batch in the window that has exactly these sequences, if `epoch` is the current one."""
        if epoch == self.producer_epoch:
            for batch in self.batches:
                if batch.last_sequence == last_sequence and batch.first_sequence == first_sequence:
                    return batch
        return None

    def copy(self) -> ProducerStateEntry:
        """An entry of its own with the same state."""
        return ProducerStateEntry(
            self.producer_id,
            self.producer_epoch,
            self.coordinator_epoch,
            self.last_timestamp_ms,
            self.current_txn_first_offset,
            self.batches.copy(),
        )


class ProducerAppendInfo:
    """Checks the batches of one producer in one append, and holds the state as it will be once they are
    written.

    Nothing is changed in the log's own state until `ProducerStateManager.update` is called, so a write that
    fails leaves no trace.
    """

    __slots__ = ("_known", "_origin", "_topic_partition", "entry", "started_txns")

    def __init__(
        self,
        topic_partition: TopicPartition,
        producer_id: int,
        current: ProducerStateEntry | None,
        origin: AppendOrigin,
    ) -> None:
        self._topic_partition = topic_partition
        self._origin = origin
        self._known = current is not None and current.producer_epoch != NO_PRODUCER_EPOCH
        self.entry = ProducerStateEntry(producer_id) if current is None else current.copy()
        self.started_txns: list[int] = []

    def append_data(self, batch: RecordBatch) -> None:
        """A data batch.

        Raises `InvalidProducerEpochError`, `OutOfOrderSequenceError` or `InvalidTxnStateError`.
        """
        entry = self.entry
        self._check_epoch(batch.producer_epoch, batch.base_offset)
        if self._origin is AppendOrigin.CLIENT:
            self._check_sequence(batch)
        entry.add_batch(
            batch.producer_epoch,
            BatchMetadata(
                batch.last_sequence,
                batch.last_offset,
                batch.last_offset - batch.base_offset,
                batch.max_timestamp_ms,
            ),
        )
        if batch.is_transactional:
            if entry.current_txn_first_offset is None:
                entry.current_txn_first_offset = batch.base_offset
                self.started_txns.append(batch.base_offset)
        elif entry.current_txn_first_offset is not None and self._origin is not AppendOrigin.REPLICATION:
            raise InvalidTxnStateError(
                f"{self._topic_partition}: producer {entry.producer_id} wrote outside its transaction, "
                f"which is open since offset {entry.current_txn_first_offset}"
            )

    def append_marker(
        self, marker: EndTransactionMarker, epoch: int, offset: int, timestamp_ms: int
    ) -> CompletedTxn | None:
        """A transaction's marker; returns the transaction it ends, None if there was none.

        Raises `InvalidProducerEpochError` or `TransactionCoordinatorFencedError`.
        """
        entry = self.entry
        self._check_epoch(epoch, offset)
        if (
            self._origin is not AppendOrigin.REPLICATION
            and marker.coordinator_epoch < entry.coordinator_epoch
        ):
            raise TransactionCoordinatorFencedError(
                f"{self._topic_partition}: the marker for producer {entry.producer_id} comes from coordinator "
                f"epoch {marker.coordinator_epoch}, the current one is {entry.coordinator_epoch}"
            )
        first_offset = entry.current_txn_first_offset
        entry.set_epoch(epoch)
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.last_timestamp_ms = timestamp_ms
        entry.current_txn_first_offset = None
        if first_offset is None:
            return None
        return CompletedTxn(entry.producer_id, first_offset, offset, marker.type is ControlRecordType.ABORT)

    def _check_epoch(self, epoch: int, offset: int) -> None:
        if epoch < self.entry.producer_epoch and self._origin is not AppendOrigin.REPLICATION:
            raise InvalidProducerEpochError(
                f"{self._topic_partition}: producer {self.entry.producer_id} wrote offset {offset} with epoch {epoch}, "
                f"the current one is {self.entry.producer_epoch}"
            )

    def _check_sequence(self, batch: RecordBatch) -> None:
        entry = self.entry
        if not self._known:
            # Nothing is known of this producer: it is new here, or its records are gone. Any sequence will
            # do.
            self._known = True
            return
        if batch.producer_epoch != entry.producer_epoch:
            if batch.base_sequence != 0:
                raise OutOfOrderSequenceError(
                    f"{self._topic_partition}: the new epoch {batch.producer_epoch} of producer {entry.producer_id} "
                    f"must begin with sequence 0, not {batch.base_sequence}"
                )
            return
        if batch.base_sequence != (entry.last_sequence + 1) % _SEQUENCES:
            raise OutOfOrderSequenceError(
                f"{self._topic_partition}: producer {entry.producer_id} sent sequence {batch.base_sequence} "
                f"at offset {batch.base_offset}, the last one was {entry.last_sequence}"
            )
