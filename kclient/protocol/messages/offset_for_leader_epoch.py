"""OffsetForLeaderEpoch: where the records of a leader epoch end."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Int16, Int32, Int64, String


@structure
class OffsetForLeaderPartition(Structure):
    partition: int = wire(Int32, "0+")
    current_leader_epoch: int = wire(Int32, "2+", default=-1, ignorable=True)
    leader_epoch: int = wire(Int32, "0+")


@structure
class OffsetForLeaderTopic(Structure):
    topic: str = wire(String, "0+")
    partitions: list[OffsetForLeaderPartition] = wire(Array(OffsetForLeaderPartition), "0+")


@message(api_key=ApiKeys.OFFSET_FOR_LEADER_EPOCH, kind="request", versions="2-4", flexible="4+")
class OffsetForLeaderEpochRequest(Message):
    """For detecting truncation (KIP-320)."""

    replica_id: int = wire(Int32, "3+", default=-2, ignorable=True)
    topics: list[OffsetForLeaderTopic] = wire(Array(OffsetForLeaderTopic), "0+")


@structure
class EpochEndOffset(Structure):
    error_code: int = wire(Int16, "0+")
    partition: int = wire(Int32, "0+")
    leader_epoch: int = wire(Int32, "1+", default=-1, ignorable=True)
    end_offset: int = wire(Int64, "0+", default=-1)


@structure
class OffsetForLeaderTopicResult(Structure):
    topic: str = wire(String, "0+")
    partitions: list[EpochEndOffset] = wire(Array(EpochEndOffset), "0+")


@message(api_key=ApiKeys.OFFSET_FOR_LEADER_EPOCH, kind="response", versions="2-4", flexible="4+")
class OffsetForLeaderEpochResponse(Message):
    """The end offset of the largest epoch that is not above the requested one."""

    throttle_time_ms: int = wire(Int32, "2+", ignorable=True)
    topics: list[OffsetForLeaderTopicResult] = wire(Array(OffsetForLeaderTopicResult), "0+")
