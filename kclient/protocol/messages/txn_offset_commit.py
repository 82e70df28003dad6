"""TxnOffsetCommit: store a group's offsets as part of a transaction."""

from __future__ import annotations

from kclient.common.uuid import Uuid
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import UUID, Array, Int16, Int32, Int64, String


@structure
class TxnOffsetCommitRequestPartition(Structure):
    partition_index: int = wire(Int32, "0+")
    committed_offset: int = wire(Int64, "0+")
    committed_leader_epoch: int = wire(Int32, "2+", default=-1, ignorable=True)
    committed_metadata: str | None = wire(String, "0+", nullable="0+")


@structure
class TxnOffsetCommitRequestTopic(Structure):
    name: str = wire(String, "0-5", ignorable=True)
    topic_id: Uuid = wire(UUID, "6+", ignorable=True)
    partitions: list[TxnOffsetCommitRequestPartition] = wire(Array(TxnOffsetCommitRequestPartition), "0+")


@message(api_key=ApiKeys.TXN_OFFSET_COMMIT, kind="request", versions="0-6", flexible="3+")
class TxnOffsetCommitRequest(Message):
    """Version 3 fences by group generation (KIP-447), 5 needs no AddOffsetsToTxn before it (KIP-890), 6 names
    topics by id.
    """

    transactional_id: str = wire(String, "0+")
    group_id: str = wire(String, "0+")
    producer_id: int = wire(Int64, "0+")
    producer_epoch: int = wire(Int16, "0+")
    generation_id_or_member_epoch: int = wire(Int32, "3+", default=-1)
    member_id: str = wire(String, "3+")
    group_instance_id: str | None = wire(String, "3+", nullable="3+", default=None)
    topics: list[TxnOffsetCommitRequestTopic] = wire(Array(TxnOffsetCommitRequestTopic), "0+")


@structure
class TxnOffsetCommitResponsePartition(Structure):
    partition_index: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "0+")


@structure
class TxnOffsetCommitResponseTopic(Structure):
    name: str = wire(String, "0-5", ignorable=True)
    topic_id: Uuid = wire(UUID, "6+", ignorable=True)
    partitions: list[TxnOffsetCommitResponsePartition] = wire(Array(TxnOffsetCommitResponsePartition), "0+")


@message(api_key=ApiKeys.TXN_OFFSET_COMMIT, kind="response", versions="0-6", flexible="3+")
class TxnOffsetCommitResponse(Message):
    """An error code for each partition."""

    throttle_time_ms: int = wire(Int32, "0+")
    topics: list[TxnOffsetCommitResponseTopic] = wire(Array(TxnOffsetCommitResponseTopic), "0+")
