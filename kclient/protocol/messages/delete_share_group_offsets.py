"""DeleteShareGroupOffsets: forget a share group's topics."""

from __future__ import annotations

from kclient.common.uuid import Uuid
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import UUID, Array, Int16, Int32, String


@structure
class DeleteShareGroupOffsetsRequestTopic(Structure):
    topic_name: str = wire(String, "0+")


@message(api_key=ApiKeys.DELETE_SHARE_GROUP_OFFSETS, kind="request", versions="0", flexible="0+")
class DeleteShareGroupOffsetsRequest(Message):
    """Goes to the group's coordinator (KIP-932)."""

    group_id: str = wire(String, "0+")
    topics: list[DeleteShareGroupOffsetsRequestTopic] = wire(Array(DeleteShareGroupOffsetsRequestTopic), "0+")


@structure
class DeleteShareGroupOffsetsResponseTopic(Structure):
    topic_name: str = wire(String, "0+")
    topic_id: Uuid = wire(UUID, "0+")
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+", default=None)


@message(api_key=ApiKeys.DELETE_SHARE_GROUP_OFFSETS, kind="response", versions="0", flexible="0+")
class DeleteShareGroupOffsetsResponse(Message):
    """An error code for each topic."""

    throttle_time_ms: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+", default=None)
    responses: list[DeleteShareGroupOffsetsResponseTopic] = wire(
        Array(DeleteShareGroupOffsetsResponseTopic), "0+"
    )
