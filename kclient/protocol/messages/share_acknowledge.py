"""ShareAcknowledge: settle records of a share group."""

from __future__ import annotations

from kclient.common.uuid import Uuid
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import UUID, Array, Bool, Int8, Int16, Int32, Int64, String


@structure
class AcknowledgementBatch(Structure):
    first_offset: int = wire(Int64, "0+")
    last_offset: int = wire(Int64, "0+")
    acknowledge_types: list[int] = wire(Array(Int8), "0+")


@structure
class AcknowledgePartition(Structure):
    partition_index: int = wire(Int32, "0+")
    acknowledgement_batches: list[AcknowledgementBatch] = wire(Array(AcknowledgementBatch), "0+")


@structure
class AcknowledgeTopic(Structure):
    topic_id: Uuid = wire(UUID, "0+")
    partitions: list[AcknowledgePartition] = wire(Array(AcknowledgePartition), "0+")


@message(api_key=ApiKeys.SHARE_ACKNOWLEDGE, kind="request", versions="1-2", flexible="0+")
class ShareAcknowledgeRequest(Message):
    """Accepts, releases or rejects ranges of offsets (KIP-932)."""

    group_id: str | None = wire(String, "0+", nullable="0+", default=None)
    member_id: str | None = wire(String, "0+", nullable="0+")
    share_session_epoch: int = wire(Int32, "0+")
    is_renew_ack: bool = wire(Bool, "2+")
    topics: list[AcknowledgeTopic] = wire(Array(AcknowledgeTopic), "0+")


@structure
class LeaderIdAndEpoch(Structure):
    leader_id: int = wire(Int32, "0+")
    leader_epoch: int = wire(Int32, "0+")


@structure
class PartitionData(Structure):
    partition_index: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+", default=None)
    current_leader: LeaderIdAndEpoch = wire(LeaderIdAndEpoch, "0+")


@structure
class ShareAcknowledgeTopicResponse(Structure):
    topic_id: Uuid = wire(UUID, "0+")
    partitions: list[PartitionData] = wire(Array(PartitionData), "0+")


@structure
class NodeEndpoint(Structure):
    node_id: int = wire(Int32, "0+")
    host: str = wire(String, "0+")
    port: int = wire(Int32, "0+")
    rack: str | None = wire(String, "0+", nullable="0+", default=None)


@message(api_key=ApiKeys.SHARE_ACKNOWLEDGE, kind="response", versions="1-2", flexible="0+")
class ShareAcknowledgeResponse(Message):
    """An error code for each partition."""

    throttle_time_ms: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+", default=None)
    acquisition_lock_timeout_ms: int = wire(Int32, "2+", ignorable=True)
    responses: list[ShareAcknowledgeTopicResponse] = wire(Array(ShareAcknowledgeTopicResponse), "0+")
    node_endpoints: list[NodeEndpoint] = wire(Array(NodeEndpoint), "0+")
