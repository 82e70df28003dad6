"""OffsetDelete: forget offsets of a group."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Int16, Int32, String


@structure
class OffsetDeleteRequestPartition(Structure):
    partition_index: int = wire(Int32, "0+")


@structure
class OffsetDeleteRequestTopic(Structure):
    name: str = wire(String, "0+")
    partitions: list[OffsetDeleteRequestPartition] = wire(Array(OffsetDeleteRequestPartition), "0+")


@message(api_key=ApiKeys.OFFSET_DELETE, kind="request", versions="0", flexible="none")
class OffsetDeleteRequest(Message):
    """Only for topics that the group is not subscribed to (KIP-496)."""

    group_id: str = wire(String, "0+")
    topics: list[OffsetDeleteRequestTopic] = wire(Array(OffsetDeleteRequestTopic), "0+")


@structure
class OffsetDeleteResponsePartition(Structure):
    partition_index: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "0+")


@structure
class OffsetDeleteResponseTopic(Structure):
    name: str = wire(String, "0+")
    partitions: list[OffsetDeleteResponsePartition] = wire(Array(OffsetDeleteResponsePartition), "0+")


@message(api_key=ApiKeys.OFFSET_DELETE, kind="response", versions="0", flexible="none")
class OffsetDeleteResponse(Message):
    """An error code for each partition."""

    error_code: int = wire(Int16, "0+")
    throttle_time_ms: int = wire(Int32, "0+", ignorable=True)
    topics: list[OffsetDeleteResponseTopic] = wire(Array(OffsetDeleteResponseTopic), "0+")
