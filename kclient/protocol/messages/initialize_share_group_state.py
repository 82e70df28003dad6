"""InitializeShareGroupState: begin a share group's state of partitions."""

from __future__ import annotations

from kclient.common.uuid import Uuid
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import UUID, Array, Int16, Int32, Int64, String


@structure
class PartitionData(Structure):
    partition: int = wire(Int32, "0+")
    state_epoch: int = wire(Int32, "0+")
    start_offset: int = wire(Int64, "0+")


@structure
class InitializeStateData(Structure):
    topic_id: Uuid = wire(UUID, "0+")
    partitions: list[PartitionData] = wire(Array(PartitionData), "0+")


@message(api_key=ApiKeys.INITIALIZE_SHARE_GROUP_STATE, kind="request", versions="0", flexible="0+")
class InitializeShareGroupStateRequest(Message):
    """Sent between brokers (KIP-932)."""

    group_id: str = wire(String, "0+")
    topics: list[InitializeStateData] = wire(Array(InitializeStateData), "0+")


@structure
class PartitionResult(Structure):
    partition: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+", default=None)


@structure
class InitializeStateResult(Structure):
    topic_id: Uuid = wire(UUID, "0+")
    partitions: list[PartitionResult] = wire(Array(PartitionResult), "0+")


@message(api_key=ApiKeys.INITIALIZE_SHARE_GROUP_STATE, kind="response", versions="0", flexible="0+")
class InitializeShareGroupStateResponse(Message):
    """An error code for each partition."""

    results: list[InitializeStateResult] = wire(Array(InitializeStateResult), "0+")
