"""DeleteShareGroupState: forget a share group's state of partitions."""

from __future__ import annotations

from kclient.common.uuid import Uuid
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import UUID, Array, Int16, Int32, String


@structure
class PartitionData(Structure):
    partition: int = wire(Int32, "0+")


@structure
class DeleteStateData(Structure):
    topic_id: Uuid = wire(UUID, "0+")
    partitions: list[PartitionData] = wire(Array(PartitionData), "0+")


@message(api_key=ApiKeys.DELETE_SHARE_GROUP_STATE, kind="request", versions="0", flexible="0+")
class DeleteShareGroupStateRequest(Message):
    """Sent between brokers (KIP-932)."""

    group_id: str = wire(String, "0+")
    topics: list[DeleteStateData] = wire(Array(DeleteStateData), "0+")


@structure
class PartitionResult(Structure):
    partition: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+", default=None)


@structure
class DeleteStateResult(Structure):
    topic_id: Uuid = wire(UUID, "0+")
    partitions: list[PartitionResult] = wire(Array(PartitionResult), "0+")


@message(api_key=ApiKeys.DELETE_SHARE_GROUP_STATE, kind="response", versions="0", flexible="0+")
class DeleteShareGroupStateResponse(Message):
    """An error code for each partition."""

    results: list[DeleteStateResult] = wire(Array(DeleteStateResult), "0+")
