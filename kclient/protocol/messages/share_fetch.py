"""ShareFetch: acquire records of a share group."""

from __future__ import annotations

from kclient.common.uuid import Uuid
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import UUID, Array, Bool, Int8, Int16, Int32, Int64, Records, String


@structure
class AcknowledgementBatch(Structure):
    first_offset: int = wire(Int64, "0+")
    last_offset: int = wire(Int64, "0+")
    acknowledge_types: list[int] = wire(Array(Int8), "0+")


@structure
class FetchPartition(Structure):
    partition_index: int = wire(Int32, "0+")
    partition_max_bytes: int = wire(Int32, "0")
    acknowledgement_batches: list[AcknowledgementBatch] = wire(Array(AcknowledgementBatch), "0+")


@structure
class FetchTopic(Structure):
    topic_id: Uuid = wire(UUID, "0+")
    partitions: list[FetchPartition] = wire(Array(FetchPartition), "0+")


@structure
class ForgottenTopic(Structure):
    topic_id: Uuid = wire(UUID, "0+")
    partitions: list[int] = wire(Array(Int32), "0+")


@message(api_key=ApiKeys.SHARE_FETCH, kind="request", versions="1-2", flexible="0+")
class ShareFetchRequest(Message):
    """Acknowledges earlier records on the way (KIP-932)."""

    group_id: str | None = wire(String, "0+", nullable="0+", default=None)
    member_id: str | None = wire(String, "0+", nullable="0+")
    share_session_epoch: int = wire(Int32, "0+")
    max_wait_ms: int = wire(Int32, "0+")
    min_bytes: int = wire(Int32, "0+")
    max_bytes: int = wire(Int32, "0+", default=2**31 - 1)
    max_records: int = wire(Int32, "1+")
    batch_size: int = wire(Int32, "1+")
    share_acquire_mode: int = wire(Int8, "2+", ignorable=True)
    is_renew_ack: bool = wire(Bool, "2+")
    topics: list[FetchTopic] = wire(Array(FetchTopic), "0+")
    forgotten_topics_data: list[ForgottenTopic] = wire(Array(ForgottenTopic), "0+")


@structure
class LeaderIdAndEpoch(Structure):
    leader_id: int = wire(Int32, "0+")
    leader_epoch: int = wire(Int32, "0+")


@structure
class AcquiredRecords(Structure):
    first_offset: int = wire(Int64, "0+")
    last_offset: int = wire(Int64, "0+")
    delivery_count: int = wire(Int16, "0+")


@structure
class PartitionData(Structure):
    partition_index: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+", default=None)
    acknowledge_error_code: int = wire(Int16, "0+")
    acknowledge_error_message: str | None = wire(String, "0+", nullable="0+", default=None)
    current_leader: LeaderIdAndEpoch = wire(LeaderIdAndEpoch, "0+")
    records: bytes | memoryview | None = wire(Records, "0+", nullable="0")
    acquired_records: list[AcquiredRecords] = wire(Array(AcquiredRecords), "0+")


@structure
class ShareFetchableTopicResponse(Structure):
    topic_id: Uuid = wire(UUID, "0+")
    partitions: list[PartitionData] = wire(Array(PartitionData), "0+")


@structure
class NodeEndpoint(Structure):
    node_id: int = wire(Int32, "0+")
    host: str = wire(String, "0+")
    port: int = wire(Int32, "0+")
    rack: str | None = wire(String, "0+", nullable="0+", default=None)


@message(api_key=ApiKeys.SHARE_FETCH, kind="response", versions="1-2", flexible="0+")
class ShareFetchResponse(Message):
    """The records and which of them were acquired."""

    throttle_time_ms: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+", default=None)
    acquisition_lock_timeout_ms: int = wire(Int32, "1+")
    responses: list[ShareFetchableTopicResponse] = wire(Array(ShareFetchableTopicResponse), "0+")
    node_endpoints: list[NodeEndpoint] = wire(Array(NodeEndpoint), "0+")
