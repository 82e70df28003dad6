"""AddOffsetsToTxn: make a group's offsets part of a transaction."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, message, wire
from kclient.protocol.wire import Int16, Int32, Int64, String


@message(api_key=ApiKeys.ADD_OFFSETS_TO_TXN, kind="request", versions="0-4", flexible="3+")
class AddOffsetsToTxnRequest(Message):
    """The partition of `__consumer_offsets` joins the transaction."""

    transactional_id: str = wire(String, "0+")
    producer_id: int = wire(Int64, "0+")
    producer_epoch: int = wire(Int16, "0+")
    group_id: str = wire(String, "0+")


@message(api_key=ApiKeys.ADD_OFFSETS_TO_TXN, kind="response", versions="0-4", flexible="3+")
class AddOffsetsToTxnResponse(Message):
    """An error code."""

    throttle_time_ms: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "0+")
