"""StreamsGroupHeartbeat: join, stay in and leave a Streams group."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Bool, Int8, Int16, Int32, Int64, String, UInt16


@structure
class KeyValue(Structure):
    key: str = wire(String, "0+")
    value: str = wire(String, "0+")


@structure
class TopicInfo(Structure):
    name: str = wire(String, "0+")
    partitions: int = wire(Int32, "0+")
    replication_factor: int = wire(Int16, "0+")
    topic_configs: list[KeyValue] = wire(Array(KeyValue), "0+")


@structure
class CopartitionGroup(Structure):
    source_topics: list[int] = wire(Array(Int16), "0+")
    source_topic_regex: list[int] = wire(Array(Int16), "0+")
    repartition_source_topics: list[int] = wire(Array(Int16), "0+")


@structure
class Subtopology(Structure):
    subtopology_id: str = wire(String, "0+")
    source_topics: list[str] = wire(Array(String), "0+")
    source_topic_regex: list[str] = wire(Array(String), "0+")
    state_changelog_topics: list[TopicInfo] = wire(Array(TopicInfo), "0+")
    repartition_sink_topics: list[str] = wire(Array(String), "0+")
    repartition_source_topics: list[TopicInfo] = wire(Array(TopicInfo), "0+")
    copartition_groups: list[CopartitionGroup] = wire(Array(CopartitionGroup), "0+")


@structure
class Topology(Structure):
    epoch: int = wire(Int32, "0+")
    subtopologies: list[Subtopology] = wire(Array(Subtopology), "0+")


@structure
class StreamsGroupHeartbeatRequestTaskIds(Structure):
    subtopology_id: str = wire(String, "0+")
    partitions: list[int] = wire(Array(Int32), "0+")


@structure
class StreamsGroupHeartbeatRequestEndpoint(Structure):
    host: str = wire(String, "0+")
    port: int = wire(UInt16, "0+")


@structure
class TaskOffset(Structure):
    subtopology_id: str = wire(String, "0+")
    partition: int = wire(Int32, "0+")
    offset: int = wire(Int64, "0+")


@message(api_key=ApiKeys.STREAMS_GROUP_HEARTBEAT, kind="request", versions="0-1", flexible="0+")
class StreamsGroupHeartbeatRequest(Message):
    """A field that is None is unchanged since the last heartbeat (KIP-1071)."""

    group_id: str = wire(String, "0+")
    member_id: str = wire(String, "0+")
    member_epoch: int = wire(Int32, "0+")
    endpoint_information_epoch: int = wire(Int32, "0+")
    instance_id: str | None = wire(String, "0+", nullable="0+", default=None)
    rack_id: str | None = wire(String, "0+", nullable="0+", default=None)
    rebalance_timeout_ms: int = wire(Int32, "0+", default=-1)
    topology: Topology | None = wire(Topology, "0+", nullable="0+", default=None)
    active_tasks: list[StreamsGroupHeartbeatRequestTaskIds] | None = wire(
        Array(StreamsGroupHeartbeatRequestTaskIds), "0+", nullable="0+", default=None
    )
    standby_tasks: list[StreamsGroupHeartbeatRequestTaskIds] | None = wire(
        Array(StreamsGroupHeartbeatRequestTaskIds), "0+", nullable="0+", default=None
    )
    warmup_tasks: list[StreamsGroupHeartbeatRequestTaskIds] | None = wire(
        Array(StreamsGroupHeartbeatRequestTaskIds), "0+", nullable="0+", default=None
    )
    process_id: str | None = wire(String, "0+", nullable="0+", default=None)
    user_endpoint: StreamsGroupHeartbeatRequestEndpoint | None = wire(
        StreamsGroupHeartbeatRequestEndpoint, "0+", nullable="0+", default=None
    )
    client_tags: list[KeyValue] | None = wire(Array(KeyValue), "0+", nullable="0+", default=None)
    task_offsets: list[TaskOffset] | None = wire(Array(TaskOffset), "0+", nullable="0+", default=None)
    task_end_offsets: list[TaskOffset] | None = wire(Array(TaskOffset), "0+", nullable="0+", default=None)
    shutdown_application: bool = wire(Bool, "0+")


@structure
class Status(Structure):
    status_code: int = wire(Int8, "0+")
    status_detail: str = wire(String, "0+")


@structure
class StreamsGroupHeartbeatResponseTaskIds(Structure):
    subtopology_id: str = wire(String, "0+")
    partitions: list[int] = wire(Array(Int32), "0+")


@structure
class StreamsGroupHeartbeatResponseEndpoint(Structure):
    host: str = wire(String, "0+")
    port: int = wire(UInt16, "0+")


@structure
class TopicPartition(Structure):
    topic: str = wire(String, "0+")
    partitions: list[int] = wire(Array(Int32), "0+")


@structure
class EndpointToPartitions(Structure):
    user_endpoint: StreamsGroupHeartbeatResponseEndpoint = wire(StreamsGroupHeartbeatResponseEndpoint, "0+")
    active_partitions: list[TopicPartition] = wire(Array(TopicPartition), "0+")
    standby_partitions: list[TopicPartition] = wire(Array(TopicPartition), "0+")


@message(api_key=ApiKeys.STREAMS_GROUP_HEARTBEAT, kind="response", versions="0-1", flexible="0+")
class StreamsGroupHeartbeatResponse(Message):
    """Tasks are None if they have not changed."""

    throttle_time_ms: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+", default=None)
    member_id: str = wire(String, "0+")
    member_epoch: int = wire(Int32, "0+")
    heartbeat_interval_ms: int = wire(Int32, "0+")
    acceptable_recovery_lag_legacy: int = wire(Int32, "0")
    task_offset_interval_ms: int = wire(Int32, "0+")
    acceptable_recovery_lag: int = wire(Int64, "1+", default=-1, ignorable=True)
    status: list[Status] | None = wire(Array(Status), "0+", nullable="0+")
    active_tasks: list[StreamsGroupHeartbeatResponseTaskIds] | None = wire(
        Array(StreamsGroupHeartbeatResponseTaskIds), "0+", nullable="0+", default=None
    )
    standby_tasks: list[StreamsGroupHeartbeatResponseTaskIds] | None = wire(
        Array(StreamsGroupHeartbeatResponseTaskIds), "0+", nullable="0+", default=None
    )
    warmup_tasks: list[StreamsGroupHeartbeatResponseTaskIds] | None = wire(
        Array(StreamsGroupHeartbeatResponseTaskIds), "0+", nullable="0+", default=None
    )
    topology_description_required: bool = wire(Bool, "1+")
    endpoint_information_epoch: int = wire(Int32, "0+")
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = wire(
        Array(EndpointToPartitions), "0+", nullable="0+", default=None
    )
