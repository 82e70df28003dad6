"""CreateTopics: create topics."""

from __future__ import annotations

from kclient.common.uuid import Uuid
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import UUID, Array, Bool, Int8, Int16, Int32, String


@structure
class CreatableReplicaAssignment(Structure):
    partition_index: int = wire(Int32, "0+")
    broker_ids: list[int] = wire(Array(Int32), "0+")


@structure
class CreatableTopicConfig(Structure):
    name: str = wire(String, "0+")
    value: str | None = wire(String, "0+", nullable="0+")


@structure
class CreatableTopic(Structure):
    name: str = wire(String, "0+")
    num_partitions: int = wire(Int32, "0+")
    replication_factor: int = wire(Int16, "0+")
    assignments: list[CreatableReplicaAssignment] = wire(Array(CreatableReplicaAssignment), "0+")
    configs: list[CreatableTopicConfig] = wire(Array(CreatableTopicConfig), "0+")


@message(api_key=ApiKeys.CREATE_TOPICS, kind="request", versions="2-7", flexible="5+")
class CreateTopicsRequest(Message):
    """Version 4 takes -1 for the broker's defaults of partitions and replicas (KIP-464)."""

    topics: list[CreatableTopic] = wire(Array(CreatableTopic), "0+")
    timeout_ms: int = wire(Int32, "0+", default=60000)
    validate_only: bool = wire(Bool, "1+")


@structure
class CreatableTopicConfigs(Structure):
    name: str = wire(String, "5+")
    value: str | None = wire(String, "5+", nullable="5+")
    read_only: bool = wire(Bool, "5+")
    config_source: int = wire(Int8, "5+", default=-1, ignorable=True)
    is_sensitive: bool = wire(Bool, "5+")


@structure
class CreatableTopicResult(Structure):
    name: str = wire(String, "0+")
    topic_id: Uuid = wire(UUID, "7+", ignorable=True)
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "1+", nullable="1+", ignorable=True)
    topic_config_error_code: int = wire(Int16, "5+", tag=0, ignorable=True)
    num_partitions: int = wire(Int32, "5+", default=-1, ignorable=True)
    replication_factor: int = wire(Int16, "5+", default=-1, ignorable=True)
    configs: list[CreatableTopicConfigs] | None = wire(
        Array(CreatableTopicConfigs), "5+", nullable="5+", ignorable=True
    )


@message(api_key=ApiKeys.CREATE_TOPICS, kind="response", versions="2-7", flexible="5+")
class CreateTopicsResponse(Message):
    """Version 5 tells the configuration of the new topics (KIP-525), 7 their ids."""

    throttle_time_ms: int = wire(Int32, "2+", ignorable=True)
    topics: list[CreatableTopicResult] = wire(Array(CreatableTopicResult), "0+")
