"""The records of `__transaction_state`: before each key comes the type of the record, before each value its version."""

from __future__ import annotations

from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Int8, Int16, Int32, Int64, String


@message(kind="coordinator-key", versions="0", flexible="none")
class TransactionLogKey(Message):
    """Key of the state of a transactional id, of record type 0."""

    transactional_id: str = wire(String, "0")


@structure
class PartitionsSchema(Structure):
    topic: str = wire(String, "0+")
    partition_ids: list[int] = wire(Array(Int32), "0+")


@message(kind="coordinator-value", versions="0-1", flexible="1+")
class TransactionLogValue(Message):
    """The state of a transactional id. Version 1 came with transactions of version 2 (KIP-890)."""

    producer_id: int = wire(Int64, "0+")
    previous_producer_id: int = wire(Int64, "1+", tag=0, default=-1)
    next_producer_id: int = wire(Int64, "1+", tag=1, default=-1)
    producer_epoch: int = wire(Int16, "0+")
    next_producer_epoch: int = wire(Int16, "1+", tag=3, default=-1)
    transaction_timeout_ms: int = wire(Int32, "0+")
    transaction_status: int = wire(Int8, "0+")
    transaction_partitions: list[PartitionsSchema] | None = wire(Array(PartitionsSchema), "0+", nullable="0+")
    transaction_last_update_timestamp_ms: int = wire(Int64, "0+")
    transaction_start_timestamp_ms: int = wire(Int64, "0+")
    client_transaction_version: int = wire(Int16, "1+", tag=2, default=0)
