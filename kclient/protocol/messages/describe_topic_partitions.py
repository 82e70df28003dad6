"""DescribeTopicPartitions: partitions of topics, page by page."""

from __future__ import annotations

from kclient.common.uuid import Uuid
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import UUID, Array, Bool, Int16, Int32, String


@structure
class TopicRequest(Structure):
    name: str = wire(String, "0+")


@structure
class DescribeTopicPartitionsRequestCursor(Structure):
    topic_name: str = wire(String, "0+")
    partition_index: int = wire(Int32, "0+")


@message(api_key=ApiKeys.DESCRIBE_TOPIC_PARTITIONS, kind="request", versions="0", flexible="0+")
class DescribeTopicPartitionsRequest(Message):
    """The cursor is where the last page ended (KIP-966)."""

    topics: list[TopicRequest] = wire(Array(TopicRequest), "0+")
    response_partition_limit: int = wire(Int32, "0+", default=2000)
    cursor: DescribeTopicPartitionsRequestCursor | None = wire(
        DescribeTopicPartitionsRequestCursor, "0+", nullable="0+", default=None
    )


@structure
class DescribeTopicPartitionsResponsePartition(Structure):
    error_code: int = wire(Int16, "0+")
    partition_index: int = wire(Int32, "0+")
    leader_id: int = wire(Int32, "0+")
    leader_epoch: int = wire(Int32, "0+", default=-1, ignorable=True)
    replica_nodes: list[int] = wire(Array(Int32), "0+")
    isr_nodes: list[int] = wire(Array(Int32), "0+")
    eligible_leader_replicas: list[int] | None = wire(Array(Int32), "0+", nullable="0+", default=None)
    last_known_elr: list[int] | None = wire(Array(Int32), "0+", nullable="0+", default=None)
    offline_replicas: list[int] = wire(Array(Int32), "0+", ignorable=True)


@structure
class DescribeTopicPartitionsResponseTopic(Structure):
    error_code: int = wire(Int16, "0+")
    name: str | None = wire(String, "0+", nullable="0+")
    topic_id: Uuid = wire(UUID, "0+", ignorable=True)
    is_internal: bool = wire(Bool, "0+", ignorable=True)
    partitions: list[DescribeTopicPartitionsResponsePartition] = wire(
        Array(DescribeTopicPartitionsResponsePartition), "0+"
    )
    topic_authorized_operations: int = wire(Int32, "0+", default=-(2**31))


@structure
class DescribeTopicPartitionsResponseCursor(Structure):
    topic_name: str = wire(String, "0+")
    partition_index: int = wire(Int32, "0+")


@message(api_key=ApiKeys.DESCRIBE_TOPIC_PARTITIONS, kind="response", versions="0", flexible="0+")
class DescribeTopicPartitionsResponse(Message):
    """The next cursor is None after the last page."""

    throttle_time_ms: int = wire(Int32, "0+", ignorable=True)
    topics: list[DescribeTopicPartitionsResponseTopic] = wire(
        Array(DescribeTopicPartitionsResponseTopic), "0+"
    )
    next_cursor: DescribeTopicPartitionsResponseCursor | None = wire(
        DescribeTopicPartitionsResponseCursor, "0+", nullable="0+", default=None
    )
