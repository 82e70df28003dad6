"""DescribeTransactions: state of transactions."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Int16, Int32, Int64, String


@message(api_key=ApiKeys.DESCRIBE_TRANSACTIONS, kind="request", versions="0", flexible="0+")
class DescribeTransactionsRequest(Message):
    """Goes to the coordinator of the transactional ids (KIP-664)."""

    transactional_ids: list[str] = wire(Array(String), "0+")


@structure
class TopicData(Structure):
    topic: str = wire(String, "0+")
    partitions: list[int] = wire(Array(Int32), "0+")


@structure
class TransactionState(Structure):
    error_code: int = wire(Int16, "0+")
    transactional_id: str = wire(String, "0+")
    transaction_state: str = wire(String, "0+")
    transaction_timeout_ms: int = wire(Int32, "0+")
    transaction_start_time_ms: int = wire(Int64, "0+")
    producer_id: int = wire(Int64, "0+")
    producer_epoch: int = wire(Int16, "0+")
    topics: list[TopicData] = wire(Array(TopicData), "0+")


@message(api_key=ApiKeys.DESCRIBE_TRANSACTIONS, kind="response", versions="0", flexible="0+")
class DescribeTransactionsResponse(Message):
    """State, timeout and partitions of each transaction."""

    throttle_time_ms: int = wire(Int32, "0+")
    transaction_states: list[TransactionState] = wire(Array(TransactionState), "0+")
