"""AddPartitionsToTxn: make partitions part of a transaction."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Bool, Int16, Int32, Int64, String


@structure
class AddPartitionsToTxnTopic(Structure):
    name: str = wire(String, "0+")
    partitions: list[int] = wire(Array(Int32), "0+")


@structure
class AddPartitionsToTxnTransaction(Structure):
    transactional_id: str = wire(String, "4+")
    producer_id: int = wire(Int64, "4+")
    producer_epoch: int = wire(Int16, "4+")
    verify_only: bool = wire(Bool, "4+")
    topics: list[AddPartitionsToTxnTopic] = wire(Array(AddPartitionsToTxnTopic), "4+")


@message(api_key=ApiKeys.ADD_PARTITIONS_TO_TXN, kind="request", versions="0-5", flexible="3+")
class AddPartitionsToTxnRequest(Message):
    """Up to version 3 a client sends one transaction, from 4 on brokers send several (KIP-890)."""

    transactions: list[AddPartitionsToTxnTransaction] = wire(Array(AddPartitionsToTxnTransaction), "4+")
    v3_and_below_transactional_id: str = wire(String, "0-3")
    v3_and_below_producer_id: int = wire(Int64, "0-3")
    v3_and_below_producer_epoch: int = wire(Int16, "0-3")
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = wire(Array(AddPartitionsToTxnTopic), "0-3")


@structure
class AddPartitionsToTxnPartitionResult(Structure):
    partition_index: int = wire(Int32, "0+")
    partition_error_code: int = wire(Int16, "0+")


@structure
class AddPartitionsToTxnTopicResult(Structure):
    name: str = wire(String, "0+")
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = wire(
        Array(AddPartitionsToTxnPartitionResult), "0+"
    )


@structure
class AddPartitionsToTxnResult(Structure):
    transactional_id: str = wire(String, "4+")
    topic_results: list[AddPartitionsToTxnTopicResult] = wire(Array(AddPartitionsToTxnTopicResult), "4+")


@message(api_key=ApiKeys.ADD_PARTITIONS_TO_TXN, kind="response", versions="0-5", flexible="3+")
class AddPartitionsToTxnResponse(Message):
    """Up to version 3 for one transaction, from 4 on for several."""

    throttle_time_ms: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "4+", ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResult] = wire(Array(AddPartitionsToTxnResult), "4+")
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = wire(
        Array(AddPartitionsToTxnTopicResult), "0-3"
    )
