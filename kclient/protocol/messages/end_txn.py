"""EndTxn: commit or abort a transaction."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, message, wire
from kclient.protocol.wire import Bool, Int16, Int32, Int64, String


@message(api_key=ApiKeys.END_TXN, kind="request", versions="0-5", flexible="3+")
class EndTxnRequest(Message):
    """Version 5 is for transactions whose epoch grows each time (KIP-890)."""

    transactional_id: str = wire(String, "0+")
    producer_id: int = wire(Int64, "0+")
    producer_epoch: int = wire(Int16, "0+")
    committed: bool = wire(Bool, "0+")


@message(api_key=ApiKeys.END_TXN, kind="response", versions="0-5", flexible="3+")
class EndTxnResponse(Message):
    """Version 5 tells the producer id and epoch for the next transaction."""

    throttle_time_ms: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "0+")
    producer_id: int = wire(Int64, "5+", default=-1, ignorable=True)
    producer_epoch: int = wire(Int16, "5+", default=-1, ignorable=True)
