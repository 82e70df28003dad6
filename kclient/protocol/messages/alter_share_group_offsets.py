"""AlterShareGroupOffsets: set the start offsets of an empty share group."""

from __future__ import annotations

from kclient.common.uuid import Uuid
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import UUID, Array, Int16, Int32, Int64, String


@structure
class AlterShareGroupOffsetsRequestPartition(Structure):
    partition_index: int = wire(Int32, "0+")
    start_offset: int = wire(Int64, "0+")


@structure
class AlterShareGroupOffsetsRequestTopic(Structure):
    topic_name: str = wire(String, "0+")
    partitions: list[AlterShareGroupOffsetsRequestPartition] = wire(
        Array(AlterShareGroupOffsetsRequestPartition), "0+"
    )


@message(api_key=ApiKeys.ALTER_SHARE_GROUP_OFFSETS, kind="request", versions="0", flexible="0+")
class AlterShareGroupOffsetsRequest(Message):
    """Goes to the group's coordinator (KIP-932)."""

    group_id: str = wire(String, "0+")
    topics: list[AlterShareGroupOffsetsRequestTopic] = wire(Array(AlterShareGroupOffsetsRequestTopic), "0+")


@structure
class AlterShareGroupOffsetsResponsePartition(Structure):
    partition_index: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+", default=None)


@structure
class AlterShareGroupOffsetsResponseTopic(Structure):
    topic_name: str = wire(String, "0+")
    topic_id: Uuid = wire(UUID, "0+")
    partitions: list[AlterShareGroupOffsetsResponsePartition] = wire(
        Array(AlterShareGroupOffsetsResponsePartition), "0+"
    )


@message(api_key=ApiKeys.ALTER_SHARE_GROUP_OFFSETS, kind="response", versions="0", flexible="0+")
class AlterShareGroupOffsetsResponse(Message):
    """An error code for each partition."""

    throttle_time_ms: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+", default=None)
    responses: list[AlterShareGroupOffsetsResponseTopic] = wire(
        Array(AlterShareGroupOffsetsResponseTopic), "0+"
    )
