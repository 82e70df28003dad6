"""Metadata: brokers, topics, partitions and their leaders."""

from __future__ import annotations

from kclient.common.uuid import Uuid
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import UUID, Array, Bool, Int16, Int32, String


@structure
class MetadataRequestTopic(Structure):
    # From version 12 on the name may be None and the id decides.
    topic_id: Uuid = wire(UUID, "10+", ignorable=True)
    name: str | None = wire(String, "0+", nullable="10+")


@message(api_key=ApiKeys.METADATA, kind="request", versions="0-13", flexible="9+")
class MetadataRequest(Message):
    """Version 1 tells no topics (empty) from all topics (None), 10 added topic ids, 12 allows asking by id
    alone.
    """

    # Version 0: empty means all topics. From version 1 on None does, and empty means none.
    topics: list[MetadataRequestTopic] | None = wire(Array(MetadataRequestTopic), "0+", nullable="1+")
    allow_auto_topic_creation: bool = wire(Bool, "4+", default=True)
    include_cluster_authorized_operations: bool = wire(Bool, "8-10")
    include_topic_authorized_operations: bool = wire(Bool, "8+")


@structure
class MetadataResponseBroker(Structure):
    node_id: int = wire(Int32, "0+")
    host: str = wire(String, "0+")
    port: int = wire(Int32, "0+")
    rack: str | None = wire(String, "1+", nullable="1+", default=None, ignorable=True)


@structure
class MetadataResponsePartition(Structure):
    error_code: int = wire(Int16, "0+")
    partition_index: int = wire(Int32, "0+")
    leader_id: int = wire(Int32, "0+")
    leader_epoch: int = wire(Int32, "7+", default=-1, ignorable=True)
    replica_nodes: list[int] = wire(Array(Int32), "0+")
    isr_nodes: list[int] = wire(Array(Int32), "0+")
    offline_replicas: list[int] = wire(Array(Int32), "5+", ignorable=True)


@structure
class MetadataResponseTopic(Structure):
    error_code: int = wire(Int16, "0+")
    name: str | None = wire(String, "0+", nullable="12+")
    topic_id: Uuid = wire(UUID, "10+", ignorable=True)
    is_internal: bool = wire(Bool, "1+", ignorable=True)
    partitions: list[MetadataResponsePartition] = wire(Array(MetadataResponsePartition), "0+")
    topic_authorized_operations: int = wire(Int32, "8+", default=-(2**31))


@message(api_key=ApiKeys.METADATA, kind="response", versions="0-13", flexible="9+")
class MetadataResponse(Message):
    """The cluster as the answering broker knows it."""

    throttle_time_ms: int = wire(Int32, "3+", ignorable=True)
    brokers: list[MetadataResponseBroker] = wire(Array(MetadataResponseBroker), "0+")
    cluster_id: str | None = wire(String, "2+", nullable="2+", default=None, ignorable=True)
    controller_id: int = wire(Int32, "1+", default=-1, ignorable=True)
    topics: list[MetadataResponseTopic] = wire(Array(MetadataResponseTopic), "0+")
    cluster_authorized_operations: int = wire(Int32, "8-10", default=-(2**31))
    error_code: int = wire(Int16, "13+", ignorable=True)
