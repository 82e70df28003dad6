"""ElectLeaders: have partitions choose new leaders."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Int8, Int16, Int32, String


@structure
class TopicPartitions(Structure):
    topic: str = wire(String, "0+")
    partitions: list[int] = wire(Array(Int32), "0+")


@message(api_key=ApiKeys.ELECT_LEADERS, kind="request", versions="0-2", flexible="2+")
class ElectLeadersRequest(Message):
    """Version 1 can ask for an unclean election (KIP-460)."""

    election_type: int = wire(Int8, "1+")
    topic_partitions: list[TopicPartitions] | None = wire(Array(TopicPartitions), "0+", nullable="0+")
    timeout_ms: int = wire(Int32, "0+", default=60000)


@structure
class PartitionResult(Structure):
    partition_id: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+")


@structure
class ReplicaElectionResult(Structure):
    topic: str = wire(String, "0+")
    partition_result: list[PartitionResult] = wire(Array(PartitionResult), "0+")


@message(api_key=ApiKeys.ELECT_LEADERS, kind="response", versions="0-2", flexible="2+")
class ElectLeadersResponse(Message):
    """An error code for each partition."""

    throttle_time_ms: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "1+")
    replica_election_results: list[ReplicaElectionResult] = wire(Array(ReplicaElectionResult), "0+")
