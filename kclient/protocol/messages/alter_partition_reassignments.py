"""AlterPartitionReassignments: move partitions to other brokers."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Bool, Int16, Int32, String


@structure
class ReassignablePartition(Structure):
    partition_index: int = wire(Int32, "0+")
    replicas: list[int] | None = wire(Array(Int32), "0+", nullable="0+", default=None)


@structure
class ReassignableTopic(Structure):
    name: str = wire(String, "0+")
    partitions: list[ReassignablePartition] = wire(Array(ReassignablePartition), "0+")


@message(api_key=ApiKeys.ALTER_PARTITION_REASSIGNMENTS, kind="request", versions="0-1", flexible="0+")
class AlterPartitionReassignmentsRequest(Message):
    """Replicas of None cancel a move (KIP-455)."""

    timeout_ms: int = wire(Int32, "0+", default=60000)
    allow_replication_factor_change: bool = wire(Bool, "1+", default=True)
    topics: list[ReassignableTopic] = wire(Array(ReassignableTopic), "0+")


@structure
class ReassignablePartitionResponse(Structure):
    partition_index: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+")


@structure
class ReassignableTopicResponse(Structure):
    name: str = wire(String, "0+")
    partitions: list[ReassignablePartitionResponse] = wire(Array(ReassignablePartitionResponse), "0+")


@message(api_key=ApiKeys.ALTER_PARTITION_REASSIGNMENTS, kind="response", versions="0-1", flexible="0+")
class AlterPartitionReassignmentsResponse(Message):
    """An error code for each partition."""

    throttle_time_ms: int = wire(Int32, "0+")
    allow_replication_factor_change: bool = wire(Bool, "1+", default=True, ignorable=True)
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+")
    responses: list[ReassignableTopicResponse] = wire(Array(ReassignableTopicResponse), "0+")
