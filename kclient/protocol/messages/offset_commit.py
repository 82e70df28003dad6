"""OffsetCommit: store a group's offsets."""

from __future__ import annotations

from kclient.common.uuid import Uuid
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import UUID, Array, Int16, Int32, Int64, String


@structure
class OffsetCommitRequestPartition(Structure):
    partition_index: int = wire(Int32, "0+")
    committed_offset: int = wire(Int64, "0+")
    committed_leader_epoch: int = wire(Int32, "6+", default=-1, ignorable=True)
    committed_metadata: str | None = wire(String, "0+", nullable="0+")


@structure
class OffsetCommitRequestTopic(Structure):
    # Topics by name up to version 9, by id from 10 on.
    name: str = wire(String, "0-9", ignorable=True)
    topic_id: Uuid = wire(UUID, "10+", ignorable=True)
    partitions: list[OffsetCommitRequestPartition] = wire(Array(OffsetCommitRequestPartition), "0+")


@message(api_key=ApiKeys.OFFSET_COMMIT, kind="request", versions="2-10", flexible="8+")
class OffsetCommitRequest(Message):
    """Version 7 brought static members, 8 is flexible, 9 serves the new group protocol (KIP-848), 10 names
    topics by id.
    """

    group_id: str = wire(String, "0+")
    # The generation in the classic protocol, the member epoch in the new one.
    generation_id_or_member_epoch: int = wire(Int32, "1+", default=-1, ignorable=True)
    member_id: str = wire(String, "1+", ignorable=True)
    group_instance_id: str | None = wire(String, "7+", nullable="7+", default=None)
    retention_time_ms: int = wire(Int64, "2-4", default=-1, ignorable=True)
    topics: list[OffsetCommitRequestTopic] = wire(Array(OffsetCommitRequestTopic), "0+")


@structure
class OffsetCommitResponsePartition(Structure):
    partition_index: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "0+")


@structure
class OffsetCommitResponseTopic(Structure):
    # Topics by name up to version 9, by id from 10 on.
    name: str = wire(String, "0-9", ignorable=True)
    topic_id: Uuid = wire(UUID, "10+", ignorable=True)
    partitions: list[OffsetCommitResponsePartition] = wire(Array(OffsetCommitResponsePartition), "0+")


@message(api_key=ApiKeys.OFFSET_COMMIT, kind="response", versions="2-10", flexible="8+")
class OffsetCommitResponse(Message):
    """An error code for each partition."""

    throttle_time_ms: int = wire(Int32, "3+", ignorable=True)
    topics: list[OffsetCommitResponseTopic] = wire(Array(OffsetCommitResponseTopic), "0+")
