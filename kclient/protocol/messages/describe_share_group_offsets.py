"""DescribeShareGroupOffsets: the start offsets of share groups."""

from __future__ import annotations

from kclient.common.uuid import Uuid
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import UUID, Array, Int16, Int32, Int64, String


@structure
class DescribeShareGroupOffsetsRequestTopic(Structure):
    topic_name: str = wire(String, "0+")
    partitions: list[int] = wire(Array(Int32), "0+")


@structure
class DescribeShareGroupOffsetsRequestGroup(Structure):
    group_id: str = wire(String, "0+")
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = wire(
        Array(DescribeShareGroupOffsetsRequestTopic), "0+", nullable="0+"
    )


@message(api_key=ApiKeys.DESCRIBE_SHARE_GROUP_OFFSETS, kind="request", versions="0-1", flexible="0+")
class DescribeShareGroupOffsetsRequest(Message):
    """No topics (None) stands for all (KIP-932)."""

    groups: list[DescribeShareGroupOffsetsRequestGroup] = wire(
        Array(DescribeShareGroupOffsetsRequestGroup), "0+"
    )


@structure
class DescribeShareGroupOffsetsResponsePartition(Structure):
    partition_index: int = wire(Int32, "0+")
    start_offset: int = wire(Int64, "0+")
    leader_epoch: int = wire(Int32, "0+")
    lag: int = wire(Int64, "1+", default=-1, ignorable=True)
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+", default=None)


@structure
class DescribeShareGroupOffsetsResponseTopic(Structure):
    topic_name: str = wire(String, "0+")
    topic_id: Uuid = wire(UUID, "0+")
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = wire(
        Array(DescribeShareGroupOffsetsResponsePartition), "0+"
    )


@structure
class DescribeShareGroupOffsetsResponseGroup(Structure):
    group_id: str = wire(String, "0+")
    topics: list[DescribeShareGroupOffsetsResponseTopic] = wire(
        Array(DescribeShareGroupOffsetsResponseTopic), "0+"
    )
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+", default=None)


@message(api_key=ApiKeys.DESCRIBE_SHARE_GROUP_OFFSETS, kind="response", versions="0-1", flexible="0+")
class DescribeShareGroupOffsetsResponse(Message):
    """The start of each partition."""

    throttle_time_ms: int = wire(Int32, "0+")
    groups: list[DescribeShareGroupOffsetsResponseGroup] = wire(
        Array(DescribeShareGroupOffsetsResponseGroup), "0+"
    )
