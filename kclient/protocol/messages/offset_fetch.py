"""OffsetFetch: read a group's stored offsets."""

from __future__ import annotations

from kclient.common.uuid import Uuid
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import UUID, Array, Bool, Int16, Int32, Int64, String


@structure
class OffsetFetchRequestTopic(Structure):
    name: str = wire(String, "0-7")
    partition_indexes: list[int] = wire(Array(Int32), "0-7")


@structure
class OffsetFetchRequestTopics(Structure):
    name: str = wire(String, "8-9", ignorable=True)
    topic_id: Uuid = wire(UUID, "10+", ignorable=True)
    partition_indexes: list[int] = wire(Array(Int32), "8+")


@structure
class OffsetFetchRequestGroup(Structure):
    group_id: str = wire(String, "8+")
    member_id: str | None = wire(String, "9+", nullable="9+", default=None, ignorable=True)
    member_epoch: int = wire(Int32, "9+", default=-1, ignorable=True)
    topics: list[OffsetFetchRequestTopics] | None = wire(Array(OffsetFetchRequestTopics), "8+", nullable="8+")


@message(api_key=ApiKeys.OFFSET_FETCH, kind="request", versions="1-10", flexible="6+")
class OffsetFetchRequest(Message):
    """Up to version 7 it asks for one group, from 8 on for several."""

    group_id: str = wire(String, "0-7")
    # From version 2 on None means all topics.
    topics: list[OffsetFetchRequestTopic] | None = wire(Array(OffsetFetchRequestTopic), "0-7", nullable="2-7")
    # From version 8 on: several groups in one request (KIP-709).
    groups: list[OffsetFetchRequestGroup] = wire(Array(OffsetFetchRequestGroup), "8+")
    require_stable: bool = wire(Bool, "7+")


@structure
class OffsetFetchResponsePartition(Structure):
    partition_index: int = wire(Int32, "0-7")
    committed_offset: int = wire(Int64, "0-7")
    committed_leader_epoch: int = wire(Int32, "5-7", default=-1, ignorable=True)
    metadata: str | None = wire(String, "0-7", nullable="0-7")
    error_code: int = wire(Int16, "0-7")


@structure
class OffsetFetchResponseTopic(Structure):
    name: str = wire(String, "0-7")
    partitions: list[OffsetFetchResponsePartition] = wire(Array(OffsetFetchResponsePartition), "0-7")


@structure
class OffsetFetchResponsePartitions(Structure):
    partition_index: int = wire(Int32, "8+")
    committed_offset: int = wire(Int64, "8+")
    committed_leader_epoch: int = wire(Int32, "8+", default=-1, ignorable=True)
    metadata: str | None = wire(String, "8+", nullable="8+")
    error_code: int = wire(Int16, "8+")


@structure
class OffsetFetchResponseTopics(Structure):
    name: str = wire(String, "8-9", ignorable=True)
    topic_id: Uuid = wire(UUID, "10+", ignorable=True)
    partitions: list[OffsetFetchResponsePartitions] = wire(Array(OffsetFetchResponsePartitions), "8+")


@structure
class OffsetFetchResponseGroup(Structure):
    group_id: str = wire(String, "8+")
    topics: list[OffsetFetchResponseTopics] = wire(Array(OffsetFetchResponseTopics), "8+")
    error_code: int = wire(Int16, "8+")


@message(api_key=ApiKeys.OFFSET_FETCH, kind="response", versions="1-10", flexible="6+")
class OffsetFetchResponse(Message):
    """Up to version 7 it answers for one group, from 8 on for several."""

    throttle_time_ms: int = wire(Int32, "3+", ignorable=True)
    topics: list[OffsetFetchResponseTopic] = wire(Array(OffsetFetchResponseTopic), "0-7")
    error_code: int = wire(Int16, "2-7", ignorable=True)
    # From version 8 on: an answer for each group (KIP-709).
    groups: list[OffsetFetchResponseGroup] = wire(Array(OffsetFetchResponseGroup), "8+")
