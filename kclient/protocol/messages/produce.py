"""Produce: append record batches to partitions."""

from __future__ import annotations

from kclient.common.uuid import Uuid
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import UUID, Array, Int16, Int32, Int64, Records, String


@structure
class PartitionProduceData(Structure):
    index: int = wire(Int32, "0+")
    records: bytes | memoryview | None = wire(Records, "0+", nullable="0+")


@structure
class TopicProduceData(Structure):
    # Topics by name up to version 12, by id from 13 on.
    name: str = wire(String, "0-12", ignorable=True)
    topic_id: Uuid = wire(UUID, "13+", ignorable=True)
    partition_data: list[PartitionProduceData] = wire(Array(PartitionProduceData), "0+")


@message(api_key=ApiKeys.PRODUCE, kind="request", versions="3-13", flexible="9+")
class ProduceRequest(Message):
    """Version 3 brought magic 2 and transactions, 9 is flexible, 12 is KIP-890 (partitions join a transaction
    by themselves), 13 names topics by id.
    """

    transactional_id: str | None = wire(String, "3+", nullable="3+", default=None)
    # -1: all replicas in sync, 0: no answer at all, 1: the leader alone.
    acks: int = wire(Int16, "0+")
    timeout_ms: int = wire(Int32, "0+")
    topic_data: list[TopicProduceData] = wire(Array(TopicProduceData), "0+")


@structure
class BatchIndexAndErrorMessage(Structure):
    batch_index: int = wire(Int32, "8+")
    batch_index_error_message: str | None = wire(String, "8+", nullable="8+", default=None)


@structure
class LeaderIdAndEpoch(Structure):
    leader_id: int = wire(Int32, "10+", default=-1)
    leader_epoch: int = wire(Int32, "10+", default=-1)


@structure
class PartitionProduceResponse(Structure):
    index: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "0+")
    base_offset: int = wire(Int64, "0+")
    # -1 if the topic keeps the timestamps of the producer.
    log_append_time_ms: int = wire(Int64, "2+", default=-1, ignorable=True)
    log_start_offset: int = wire(Int64, "5+", default=-1, ignorable=True)
    record_errors: list[BatchIndexAndErrorMessage] = wire(
        Array(BatchIndexAndErrorMessage), "8+", ignorable=True
    )
    error_message: str | None = wire(String, "8+", nullable="8+", default=None, ignorable=True)
    # Set with NOT_LEADER_OR_FOLLOWER, so that the client need not ask for metadata (KIP-951).
    current_leader: LeaderIdAndEpoch = wire(LeaderIdAndEpoch, "10+", tag=0)


@structure
class TopicProduceResponse(Structure):
    name: str = wire(String, "0-12", ignorable=True)
    topic_id: Uuid = wire(UUID, "13+", ignorable=True)
    partition_responses: list[PartitionProduceResponse] = wire(Array(PartitionProduceResponse), "0+")


@structure
class NodeEndpoint(Structure):
    node_id: int = wire(Int32, "10+")
    host: str = wire(String, "10+")
    port: int = wire(Int32, "10+")
    rack: str | None = wire(String, "10+", nullable="10+", default=None)


@message(api_key=ApiKeys.PRODUCE, kind="response", versions="3-13", flexible="9+")
class ProduceResponse(Message):
    """Version 8 reports single bad records (KIP-467), 10 the new leader (KIP-951)."""

    responses: list[TopicProduceResponse] = wire(Array(TopicProduceResponse), "0+")
    throttle_time_ms: int = wire(Int32, "1+", ignorable=True)
    node_endpoints: list[NodeEndpoint] = wire(Array(NodeEndpoint), "10+", tag=0)
