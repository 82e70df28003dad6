"""ListOffsets: find offsets by timestamp, or the first and last ones."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Int8, Int16, Int32, Int64, String


@structure
class ListOffsetsPartition(Structure):
    partition_index: int = wire(Int32, "0+")
    current_leader_epoch: int = wire(Int32, "4+", default=-1, ignorable=True)
    timestamp: int = wire(Int64, "0+")


@structure
class ListOffsetsTopic(Structure):
    name: str = wire(String, "0+")
    partitions: list[ListOffsetsPartition] = wire(Array(ListOffsetsPartition), "0+")


@message(api_key=ApiKeys.LIST_OFFSETS, kind="request", versions="1-11", flexible="6+")
class ListOffsetsRequest(Message):
    """A negative timestamp asks for a special offset: -1 latest, -2 earliest, -3 largest timestamp (7), -4
    earliest local (8), -5 last tiered (9).
    """

    replica_id: int = wire(Int32, "0+")
    isolation_level: int = wire(Int8, "2+")
    topics: list[ListOffsetsTopic] = wire(Array(ListOffsetsTopic), "0+")
    # For offsets in remote storage (KIP-1075).
    timeout_ms: int = wire(Int32, "10+", ignorable=True)


@structure
class ListOffsetsPartitionResponse(Structure):
    partition_index: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "0+")
    timestamp: int = wire(Int64, "1+", default=-1)
    offset: int = wire(Int64, "1+", default=-1)
    leader_epoch: int = wire(Int32, "4+", default=-1)


@structure
class ListOffsetsTopicResponse(Structure):
    name: str = wire(String, "0+")
    partitions: list[ListOffsetsPartitionResponse] = wire(Array(ListOffsetsPartitionResponse), "0+")


@message(api_key=ApiKeys.LIST_OFFSETS, kind="response", versions="1-11", flexible="6+")
class ListOffsetsResponse(Message):
    """The offsets found, -1 for none."""

    throttle_time_ms: int = wire(Int32, "2+", ignorable=True)
    topics: list[ListOffsetsTopicResponse] = wire(Array(ListOffsetsTopicResponse), "0+")
