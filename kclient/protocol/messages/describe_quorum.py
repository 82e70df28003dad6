"""DescribeQuorum: state of the controllers' quorum."""

from __future__ import annotations

from kclient.common.uuid import Uuid
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import UUID, Array, Int16, Int32, Int64, String, UInt16


@structure
class DescribeQuorumRequestPartitionData(Structure):
    partition_index: int = wire(Int32, "0+")


@structure
class DescribeQuorumRequestTopicData(Structure):
    topic_name: str = wire(String, "0+")
    partitions: list[DescribeQuorumRequestPartitionData] = wire(
        Array(DescribeQuorumRequestPartitionData), "0+"
    )


@message(api_key=ApiKeys.DESCRIBE_QUORUM, kind="request", versions="0-2", flexible="0+")
class DescribeQuorumRequest(Message):
    """Asks for the partition of the cluster's metadata (KIP-595)."""

    topics: list[DescribeQuorumRequestTopicData] = wire(Array(DescribeQuorumRequestTopicData), "0+")


@structure
class ReplicaState(Structure):
    replica_id: int = wire(Int32, "0+")
    replica_directory_id: Uuid = wire(UUID, "2+")
    log_end_offset: int = wire(Int64, "0+")
    last_fetch_timestamp: int = wire(Int64, "1+", default=-1, ignorable=True)
    last_caught_up_timestamp: int = wire(Int64, "1+", default=-1, ignorable=True)


@structure
class DescribeQuorumResponsePartitionData(Structure):
    partition_index: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "2+", nullable="2+", ignorable=True)
    leader_id: int = wire(Int32, "0+")
    leader_epoch: int = wire(Int32, "0+")
    high_watermark: int = wire(Int64, "0+")
    current_voters: list[ReplicaState] = wire(Array(ReplicaState), "0+")
    observers: list[ReplicaState] = wire(Array(ReplicaState), "0+")


@structure
class DescribeQuorumResponseTopicData(Structure):
    topic_name: str = wire(String, "0+")
    partitions: list[DescribeQuorumResponsePartitionData] = wire(
        Array(DescribeQuorumResponsePartitionData), "0+"
    )


@structure
class Listener(Structure):
    name: str = wire(String, "2+")
    host: str = wire(String, "2+")
    port: int = wire(UInt16, "2+")


@structure
class Node(Structure):
    node_id: int = wire(Int32, "2+")
    listeners: list[Listener] = wire(Array(Listener), "2+")


@message(api_key=ApiKeys.DESCRIBE_QUORUM, kind="response", versions="0-2", flexible="0+")
class DescribeQuorumResponse(Message):
    """Version 1 tells when replicas last caught up (KIP-836), 2 their endpoints (KIP-853)."""

    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "2+", nullable="2+", ignorable=True)
    topics: list[DescribeQuorumResponseTopicData] = wire(Array(DescribeQuorumResponseTopicData), "0+")
    nodes: list[Node] = wire(Array(Node), "2+")
