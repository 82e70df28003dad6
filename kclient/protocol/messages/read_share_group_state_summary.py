"""ReadShareGroupStateSummary: the start offsets of a share group's partitions."""

from __future__ import annotations

from kclient.common.uuid import Uuid
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import UUID, Array, Int16, Int32, Int64, String


@structure
class PartitionData(Structure):
    partition: int = wire(Int32, "0+")
    leader_epoch: int = wire(Int32, "0+")


@structure
class ReadStateSummaryData(Structure):
    topic_id: Uuid = wire(UUID, "0+")
    partitions: list[PartitionData] = wire(Array(PartitionData), "0+")


@message(api_key=ApiKeys.READ_SHARE_GROUP_STATE_SUMMARY, kind="request", versions="0-1", flexible="0+")
class ReadShareGroupStateSummaryRequest(Message):
    """Sent between brokers (KIP-932)."""

    group_id: str = wire(String, "0+")
    topics: list[ReadStateSummaryData] = wire(Array(ReadStateSummaryData), "0+")


@structure
class PartitionResult(Structure):
    partition: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+", default=None)
    state_epoch: int = wire(Int32, "0+")
    leader_epoch: int = wire(Int32, "0+")
    start_offset: int = wire(Int64, "0+")
    delivery_complete_count: int = wire(Int32, "1+", default=-1, ignorable=True)


@structure
class ReadStateSummaryResult(Structure):
    topic_id: Uuid = wire(UUID, "0+")
    partitions: list[PartitionResult] = wire(Array(PartitionResult), "0+")


@message(api_key=ApiKeys.READ_SHARE_GROUP_STATE_SUMMARY, kind="response", versions="0-1", flexible="0+")
class ReadShareGroupStateSummaryResponse(Message):
    """The start of each partition, without the state of its records."""

    results: list[ReadStateSummaryResult] = wire(Array(ReadStateSummaryResult), "0+")
