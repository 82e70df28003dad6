"""InitProducerId: obtain a producer id and epoch."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, message, wire
from kclient.protocol.wire import Bool, Int16, Int32, Int64, String


@message(api_key=ApiKeys.INIT_PRODUCER_ID, kind="request", versions="0-6", flexible="2+")
class InitProducerIdRequest(Message):
    """Version 3 lets a producer keep its id with a new epoch (KIP-360), 6 is for two-phase commit (KIP-939)."""

    transactional_id: str | None = wire(String, "0+", nullable="0+")
    transaction_timeout_ms: int = wire(Int32, "0+")
    # -1, or the id to keep with a new epoch (KIP-360).
    producer_id: int = wire(Int64, "3+", default=-1)
    producer_epoch: int = wire(Int16, "3+", default=-1)
    enable2_pc: bool = wire(Bool, "6+")
    keep_prepared_txn: bool = wire(Bool, "6+")


@message(api_key=ApiKeys.INIT_PRODUCER_ID, kind="response", versions="0-6", flexible="2+")
class InitProducerIdResponse(Message):
    """The id and epoch; version 6 also those of a transaction that is kept."""

    throttle_time_ms: int = wire(Int32, "0+", ignorable=True)
    error_code: int = wire(Int16, "0+")
    producer_id: int = wire(Int64, "0+", default=-1)
    producer_epoch: int = wire(Int16, "0+")
    ongoing_txn_producer_id: int = wire(Int64, "6+", default=-1)
    ongoing_txn_producer_epoch: int = wire(Int16, "6+", default=-1)
