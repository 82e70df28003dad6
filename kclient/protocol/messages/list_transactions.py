"""ListTransactions: the transactions that a broker coordinates."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Int16, Int32, Int64, String


@message(api_key=ApiKeys.LIST_TRANSACTIONS, kind="request", versions="0-2", flexible="0+")
class ListTransactionsRequest(Message):
    """Version 1 filters by duration (KIP-994), 2 by pattern (KIP-1152)."""

    state_filters: list[str] = wire(Array(String), "0+")
    producer_id_filters: list[int] = wire(Array(Int64), "0+")
    duration_filter: int = wire(Int64, "1+", default=-1)
    transactional_id_pattern: str | None = wire(String, "2+", nullable="2+", default=None)


@structure
class TransactionState(Structure):
    transactional_id: str = wire(String, "0+")
    producer_id: int = wire(Int64, "0+")
    transaction_state: str = wire(String, "0+")


@message(api_key=ApiKeys.LIST_TRANSACTIONS, kind="response", versions="0-2", flexible="0+")
class ListTransactionsResponse(Message):
    """The transactions of the answering broker alone."""

    throttle_time_ms: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "0+")
    unknown_state_filters: list[str] = wire(Array(String), "0+")
    transaction_states: list[TransactionState] = wire(Array(TransactionState), "0+")
