"""DescribeProducers: producers that are active on partitions."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Int16, Int32, Int64, String


@structure
class TopicRequest(Structure):
    name: str = wire(String, "0+")
    partition_indexes: list[int] = wire(Array(Int32), "0+")


@message(api_key=ApiKeys.DESCRIBE_PRODUCERS, kind="request", versions="0", flexible="0+")
class DescribeProducersRequest(Message):
    """Goes to the partitions' leaders (KIP-664)."""

    topics: list[TopicRequest] = wire(Array(TopicRequest), "0+")


@structure
class ProducerState(Structure):
    producer_id: int = wire(Int64, "0+")
    producer_epoch: int = wire(Int32, "0+")
    last_sequence: int = wire(Int32, "0+", default=-1)
    last_timestamp: int = wire(Int64, "0+", default=-1)
    coordinator_epoch: int = wire(Int32, "0+")
    current_txn_start_offset: int = wire(Int64, "0+", default=-1)


@structure
class PartitionResponse(Structure):
    partition_index: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+", default=None)
    active_producers: list[ProducerState] = wire(Array(ProducerState), "0+")


@structure
class TopicResponse(Structure):
    name: str = wire(String, "0+")
    partitions: list[PartitionResponse] = wire(Array(PartitionResponse), "0+")


@message(api_key=ApiKeys.DESCRIBE_PRODUCERS, kind="response", versions="0", flexible="0+")
class DescribeProducersResponse(Message):
    """Producer ids, epochs, sequences and open transactions."""

    throttle_time_ms: int = wire(Int32, "0+")
    topics: list[TopicResponse] = wire(Array(TopicResponse), "0+")
