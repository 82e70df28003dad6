"""ProducerBatch: a batch's way from the first record to its outcome."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import TYPE_CHECKING

import attrs

from kclient.common.topic_partition import TopicPartition
from kclient.errors import IllegalStateError
from kclient.producer.internals.idempotence.fate import Fate
from kclient.record import BatchBuilder

if TYPE_CHECKING:
    from kclient.producer.internals.partition_queue import PartitionQueue

NO_PRODUCER_ID = -1
NO_EPOCH = -1
NO_SEQUENCE = -1


class BatchState(Enum):
    """The state of a batch."""

    # Enum's own is a function of Python's, and each state of a batch is looked up.
    __hash__ = object.__hash__

    QUEUED = auto()
    """In its partition's queue: open, full, or waiting to be sent again."""
    IN_FLIGHT = auto()
    """Carried by a request that may still be written or answered."""
    SUCCEEDED = auto()
    FAILED = auto()
    ABANDONED = auto()
    """Failed while in flight: the sender was told, but a request still carries the bytes, so they stay accounted."""
    SPLIT = auto()
    """Replaced by smaller batches."""


_VALID_TRANSITIONS: dict[BatchState, frozenset[BatchState]] = {
    BatchState.QUEUED: frozenset({BatchState.IN_FLIGHT, BatchState.SUCCEEDED, BatchState.FAILED}),
    BatchState.IN_FLIGHT: frozenset(
        {BatchState.QUEUED, BatchState.SUCCEEDED, BatchState.FAILED, BatchState.ABANDONED, BatchState.SPLIT}
    ),
    BatchState.ABANDONED: frozenset({BatchState.FAILED}),
    BatchState.SUCCEEDED: frozenset(),
    BatchState.FAILED: frozenset(),
    BatchState.SPLIT: frozenset(),
}


@attrs.define(eq=False)
class ProducerBatch:
    """A batch with what the producer knows of it.

    Appending threads only touch `builder`. All else belongs to the I/O thread once the batch is queued.
    """

    builder: BatchBuilder
    queue: PartitionQueue
    number: int
    """Batches are numbered as they are made; a part of a split batch keeps the number of the whole."""
    created_ms: int
    charge: int
    """Bytes of buffer.memory that the batch holds."""
    queued_ms: int
    """Since when it waits to be sent, or to be sent again."""
    state: BatchState = BatchState.QUEUED
    attempts: int = 0
    retry_at_ms: int = -1
    leader_epoch: int | None = None
    """The epoch of the leader that the last attempt went to."""
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_EPOCH
    base_sequence: int = NO_SEQUENCE
    fate: Fate = Fate.NOT_WRITTEN
    """The knowledge about it from all its attempts that are over."""
    forgotten: bool = False
    """The broker refused it as out of order although it may have it: it is not sent again (see `next_repetition`)."""
    proven: bool = False
    """A younger batch was acknowledged that can only stand behind it, if it was not refused meanwhile."""
    last_error: BaseException | None = None
    sealed: bool = False

    @property
    def tp(self) -> TopicPartition:
        """The batch's partition."""
        return self.queue.tp

    @property
    def done(self) -> bool:
        """True if the futures have their outcome, or others took over."""
        return self.state is not BatchState.QUEUED and self.state is not BatchState.IN_FLIGHT

    @property
    def has_sequence(self) -> bool:
        """True if the batch has its place among those of its producer id."""
        return self.base_sequence != NO_SEQUENCE

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record."""
        return (self.base_sequence + self.builder.count - 1) & 0x7FFFFFFF

    @property
    def is_full(self) -> bool:
        """True if nothing more can be appended."""
        builder = self.builder
        return builder.closed or builder.size >= builder.limit

    def transition_to(self, state: BatchState) -> None:
        """Move on to `state`; raises IllegalStateError for a move that cannot be."""
        if state not in _VALID_TRANSITIONS[self.state]:
            raise IllegalStateError(f"A batch of {self.tp} cannot go from {self.state.name} to {state.name}")
        self.state = state

    def stamp(self, producer_id: int, producer_epoch: int, base_sequence: int) -> None:
        """Give the batch its place among those of a producer id, or a new one (KIP-360)."""
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        if self.sealed:
            self.builder.restamp(producer_id, producer_epoch, base_sequence)

    def seal(self, attributes: int, compressed: bytes | None) -> None:
        """Take no more records and write the batch's header."""
        self.builder.close(self.producer_id, self.producer_epoch, self.base_sequence, attributes, compressed)
        self.sealed = True

    def wire_bytes(self) -> memoryview:
        """The batch as it travels: the builder's own bytes, not a copy."""
        (whole,) = self.builder.views()
        return whole

    def succeed(self, base_offset: int, log_append_time_ms: int) -> None:
        """Tell futures and callbacks where the records are."""
        self.transition_to(BatchState.SUCCEEDED)
        self.builder.result.complete(base_offset, log_append_time_ms)

    def fail(
        self,
        error: BaseException,
        record_error: Callable[[int], BaseException] | None = None,
        *,
        still_carried: bool = False,
    ) -> None:
        """Tell futures and callbacks that the records were not written, or that this is not known.

        `still_carried` says that a request with the batch may yet be written or answered.
        """
        self.transition_to(BatchState.ABANDONED if still_carried else BatchState.FAILED)
        self.builder.result.complete(-1, -1, error, record_error)
