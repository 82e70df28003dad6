"""ReadShareGroupState: read a share group's state of partitions."""

from __future__ import annotations

from kclient.common.uuid import Uuid
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import UUID, Array, Int8, Int16, Int32, Int64, String


@structure
class PartitionData(Structure):
    partition: int = wire(Int32, "0+")
    leader_epoch: int = wire(Int32, "0+")


@structure
class ReadStateData(Structure):
    topic_id: Uuid = wire(UUID, "0+")
    partitions: list[PartitionData] = wire(Array(PartitionData), "0+")


@message(api_key=ApiKeys.READ_SHARE_GROUP_STATE, kind="request", versions="0", flexible="0+")
class ReadShareGroupStateRequest(Message):
    """Sent between brokers (KIP-932)."""

    group_id: str = wire(String, "0+")
    topics: list[ReadStateData] = wire(Array(ReadStateData), "0+")


@structure
class StateBatch(Structure):
    first_offset: int = wire(Int64, "0+")
    last_offset: int = wire(Int64, "0+")
    delivery_state: int = wire(Int8, "0+")
    delivery_count: int = wire(Int16, "0+")


@structure
class PartitionResult(Structure):
    partition: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+", default=None)
    state_epoch: int = wire(Int32, "0+")
    start_offset: int = wire(Int64, "0+")
    state_batches: list[StateBatch] = wire(Array(StateBatch), "0+")


@structure
class ReadStateResult(Structure):
    topic_id: Uuid = wire(UUID, "0+")
    partitions: list[PartitionResult] = wire(Array(PartitionResult), "0+")


@message(api_key=ApiKeys.READ_SHARE_GROUP_STATE, kind="response", versions="0", flexible="0+")
class ReadShareGroupStateResponse(Message):
    """The state of each partition."""

    results: list[ReadStateResult] = wire(Array(ReadStateResult), "0+")
