"""Fetch: read record batches from partitions."""

from __future__ import annotations

from kclient.common.uuid import Uuid
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import UUID, Array, Int8, Int16, Int32, Int64, Records, String


@structure
class ReplicaState(Structure):
    replica_id: int = wire(Int32, "15+", default=-1)
    replica_epoch: int = wire(Int64, "15+", default=-1)


@structure
class FetchPartition(Structure):
    partition: int = wire(Int32, "0+")
    current_leader_epoch: int = wire(Int32, "9+", default=-1, ignorable=True)
    fetch_offset: int = wire(Int64, "0+")
    last_fetched_epoch: int = wire(Int32, "12+", default=-1)
    log_start_offset: int = wire(Int64, "5+", default=-1, ignorable=True)
    partition_max_bytes: int = wire(Int32, "0+")
    replica_directory_id: Uuid = wire(UUID, "17+", tag=0, ignorable=True)
    high_watermark: int = wire(Int64, "18+", tag=1, default=2**63 - 1, ignorable=True)


@structure
class FetchTopic(Structure):
    # Topics by name up to version 12, by id from 13 on.
    topic: str = wire(String, "0-12", ignorable=True)
    topic_id: Uuid = wire(UUID, "13+", ignorable=True)
    partitions: list[FetchPartition] = wire(Array(FetchPartition), "0+")


@structure
class ForgottenTopic(Structure):
    # Topics by name up to version 12, by id from 13 on.
    topic: str = wire(String, "7-12", ignorable=True)
    topic_id: Uuid = wire(UUID, "13+", ignorable=True)
    partitions: list[int] = wire(Array(Int32), "7+")


@message(api_key=ApiKeys.FETCH, kind="request", versions="4-18", flexible="12+")
class FetchRequest(Message):
    """Version 7 brought fetch sessions (KIP-227), 11 the rack (KIP-392), 12 is flexible, 13 names topics by
    id (KIP-516).
    """

    cluster_id: str | None = wire(String, "12+", nullable="12+", tag=0, default=None, ignorable=True)
    replica_id: int = wire(Int32, "0-14", default=-1)
    # From version 15 on a replica says who it is here; consumers leave it out (KIP-903).
    replica_state: ReplicaState = wire(ReplicaState, "15+", tag=1)
    max_wait_ms: int = wire(Int32, "0+")
    min_bytes: int = wire(Int32, "0+")
    max_bytes: int = wire(Int32, "3+", default=2**31 - 1, ignorable=True)
    isolation_level: int = wire(Int8, "4+", ignorable=True)
    # 0 with epoch 0 opens a session, 0 with epoch -1 fetches without one (KIP-227).
    session_id: int = wire(Int32, "7+", ignorable=True)
    session_epoch: int = wire(Int32, "7+", default=-1, ignorable=True)
    topics: list[FetchTopic] = wire(Array(FetchTopic), "0+")
    forgotten_topics_data: list[ForgottenTopic] = wire(Array(ForgottenTopic), "7+")
    rack_id: str = wire(String, "11+", ignorable=True)


@structure
class EpochEndOffset(Structure):
    epoch: int = wire(Int32, "12+", default=-1)
    end_offset: int = wire(Int64, "12+", default=-1)


@structure
class LeaderIdAndEpoch(Structure):
    leader_id: int = wire(Int32, "12+", default=-1)
    leader_epoch: int = wire(Int32, "12+", default=-1)


@structure
class SnapshotId(Structure):
    end_offset: int = wire(Int64, "0+", default=-1)
    epoch: int = wire(Int32, "0+", default=-1)


@structure
class AbortedTransaction(Structure):
    producer_id: int = wire(Int64, "4+")
    first_offset: int = wire(Int64, "4+")


@structure
class PartitionData(Structure):
    partition_index: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "0+")
    high_watermark: int = wire(Int64, "0+")
    last_stable_offset: int = wire(Int64, "4+", default=-1, ignorable=True)
    log_start_offset: int = wire(Int64, "5+", default=-1, ignorable=True)
    diverging_epoch: EpochEndOffset = wire(EpochEndOffset, "12+", tag=0)
    current_leader: LeaderIdAndEpoch = wire(LeaderIdAndEpoch, "12+", tag=1)
    snapshot_id: SnapshotId = wire(SnapshotId, "12+", tag=2)
    # None when reading uncommitted records.
    aborted_transactions: list[AbortedTransaction] | None = wire(
        Array(AbortedTransaction), "4+", nullable="4+", ignorable=True
    )
    # The broker to fetch from instead; then there are no records here (KIP-392).
    preferred_read_replica: int = wire(Int32, "11+", default=-1)
    records: bytes | memoryview | None = wire(Records, "0+", nullable="0+")


@structure
class FetchableTopicResponse(Structure):
    # Topics by name up to version 12, by id from 13 on.
    topic: str = wire(String, "0-12", ignorable=True)
    topic_id: Uuid = wire(UUID, "13+", ignorable=True)
    partitions: list[PartitionData] = wire(Array(PartitionData), "0+")


@structure
class NodeEndpoint(Structure):
    node_id: int = wire(Int32, "16+")
    host: str = wire(String, "16+")
    port: int = wire(Int32, "16+")
    rack: str | None = wire(String, "16+", nullable="16+", default=None)


@message(api_key=ApiKeys.FETCH, kind="response", versions="4-18", flexible="12+")
class FetchResponse(Message):
    """One partition's error does not fail the others; `error_code` is that of the session."""

    throttle_time_ms: int = wire(Int32, "1+", ignorable=True)
    error_code: int = wire(Int16, "7+", ignorable=True)
    session_id: int = wire(Int32, "7+")
    responses: list[FetchableTopicResponse] = wire(Array(FetchableTopicResponse), "0+")
    node_endpoints: list[NodeEndpoint] = wire(Array(NodeEndpoint), "16+", tag=0)
