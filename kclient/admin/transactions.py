"""Transactions as coordinators know them, producers as partitions know them, and what to abort (KIP-664)."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

import attrs

from kclient.admin.internals.fields import of_type, within
from kclient.common.topic_partition import TopicPartition


class TransactionState(StrEnum):
    """State of a transaction, in Kafka's word for it. One that is not known here keeps its word, and equals it."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, str):
            return None
        made = str.__new__(cls, value)
        made._name_ = "UNKNOWN"
        made._value_ = value
        return made


@attrs.frozen
class TransactionListing:
    """One transactional id, as its coordinator lists it."""

    transactional_id: str
    producer_id: int
    state: TransactionState
    coordinator_id: int
    """Id of the broker that listed it."""


@attrs.frozen
class TransactionDescription:
    """One transactional id and its transaction, as its coordinator knows them."""

    transactional_id: str
    coordinator_id: int
    """Id of the broker; -1 if the coordinator moved while it was asked."""
    state: TransactionState
    producer_id: int
    producer_epoch: int
    transaction_timeout_ms: int
    transaction_start_time_ms: int | None
    """Time since the epoch; None without a transaction that is open or being ended."""
    topic_partitions: frozenset[TopicPartition]
    """Partitions of the transaction; of one that is being ended, those that have no marker yet."""


@attrs.frozen
class ProducerState:
    """One producer that has written to a partition, idempotent or transactional."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int | None
    """Epoch of the coordinator that ended its last transaction here; None if none has."""
    current_transaction_start_offset: int | None
    """First offset of its open transaction; None without one."""


@attrs.frozen
class PartitionProducerState:
    """The producers of a partition that its broker remembers."""

    active_producers: tuple[ProducerState, ...]


@attrs.frozen
class FencedProducer:
    """Producer id and epoch that a transactional id has after it was fenced; older epochs are refused."""

    producer_id: int
    producer_epoch: int


@attrs.frozen
class AbortTransactionSpec:
    """A transaction on one partition that is to be aborted, as a `ProducerState` describes it.

    `coordinator_epoch` None, for a producer that has never ended a transaction there, is sent as 0, which no
    coordinator is below. Raises TypeError and ValueError for what cannot be.
    """

    topic_partition: TopicPartition = attrs.field(validator=of_type(TopicPartition))
    producer_id: int = attrs.field(validator=[of_type(int), within(0, 2**63 - 1)])
    producer_epoch: int = attrs.field(validator=[of_type(int), within(0, 2**15 - 1)])
    coordinator_epoch: int | None = attrs.field(
        default=None, validator=[of_type(int, optional=True), within(0, 2**31 - 1)]
    )

    def __str__(self) -> str:
        epoch = "" if self.coordinator_epoch is None else f", coordinator epoch {self.coordinator_epoch}"
        return f"{self.topic_partition} (producer id {self.producer_id}, epoch {self.producer_epoch}{epoch})"
