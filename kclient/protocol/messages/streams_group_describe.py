"""StreamsGroupDescribe: state, topology and members of Streams groups."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Bool, Int8, Int16, Int32, Int64, String, UInt16


@message(api_key=ApiKeys.STREAMS_GROUP_DESCRIBE, kind="request", versions="0-1", flexible="0+")
class StreamsGroupDescribeRequest(Message):
    """Goes to the groups' coordinator (KIP-1071)."""

    group_ids: list[str] = wire(Array(String), "0+")
    include_authorized_operations: bool = wire(Bool, "0+")
    include_topology_description: bool = wire(Bool, "1+")


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
class Subtopology(Structure):
    subtopology_id: str = wire(String, "0+")
    source_topics: list[str] = wire(Array(String), "0+")
    repartition_sink_topics: list[str] = wire(Array(String), "0+")
    state_changelog_topics: list[TopicInfo] = wire(Array(TopicInfo), "0+")
    repartition_source_topics: list[TopicInfo] = wire(Array(TopicInfo), "0+")


@structure
class Topology(Structure):
    epoch: int = wire(Int32, "0+")
    subtopologies: list[Subtopology] | None = wire(Array(Subtopology), "0+", nullable="0+", default=None)


@structure
class Endpoint(Structure):
    host: str = wire(String, "0+")
    port: int = wire(UInt16, "0+")


@structure
class TaskOffset(Structure):
    subtopology_id: str = wire(String, "0+")
    partition: int = wire(Int32, "0+")
    offset: int = wire(Int64, "0+")


@structure
class TaskIds(Structure):
    subtopology_id: str = wire(String, "0+")
    partitions: list[int] = wire(Array(Int32), "0+")


@structure
class Assignment(Structure):
    active_tasks: list[TaskIds] = wire(Array(TaskIds), "0+")
    standby_tasks: list[TaskIds] = wire(Array(TaskIds), "0+")
    warmup_tasks: list[TaskIds] = wire(Array(TaskIds), "0+")


@structure
class Member(Structure):
    member_id: str = wire(String, "0+")
    member_epoch: int = wire(Int32, "0+")
    instance_id: str | None = wire(String, "0+", nullable="0+", default=None)
    rack_id: str | None = wire(String, "0+", nullable="0+", default=None)
    client_id: str = wire(String, "0+")
    client_host: str = wire(String, "0+")
    topology_epoch: int = wire(Int32, "0+")
    process_id: str = wire(String, "0+")
    user_endpoint: Endpoint | None = wire(Endpoint, "0+", nullable="0+", default=None)
    client_tags: list[KeyValue] = wire(Array(KeyValue), "0+")
    task_offsets: list[TaskOffset] = wire(Array(TaskOffset), "0+")
    task_end_offsets: list[TaskOffset] = wire(Array(TaskOffset), "0+")
    assignment: Assignment = wire(Assignment, "0+")
    target_assignment: Assignment = wire(Assignment, "0+")
    is_classic: bool = wire(Bool, "0+")


@structure
class TopologyDescriptionNode(Structure):
    name: str = wire(String, "1+")
    node_type: int = wire(Int8, "1+")
    source_topics: list[str] = wire(Array(String), "1+")
    sink_topic: str | None = wire(String, "1+", nullable="1+", default=None)
    stores: list[str] = wire(Array(String), "1+")
    successors: list[str] = wire(Array(String), "1+")


@structure
class TopologyDescriptionSubtopology(Structure):
    subtopology_id: str = wire(String, "1+")
    nodes: list[TopologyDescriptionNode] = wire(Array(TopologyDescriptionNode), "1+")


@structure
class TopologyDescriptionGlobalStore(Structure):
    source: TopologyDescriptionNode = wire(TopologyDescriptionNode, "1+")
    processor: TopologyDescriptionNode = wire(TopologyDescriptionNode, "1+")


@structure
class TopologyDescription(Structure):
    subtopologies: list[TopologyDescriptionSubtopology] = wire(Array(TopologyDescriptionSubtopology), "1+")
    global_stores: list[TopologyDescriptionGlobalStore] = wire(Array(TopologyDescriptionGlobalStore), "1+")


@structure
class DescribedGroup(Structure):
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+", default=None)
    group_id: str = wire(String, "0+")
    group_state: str = wire(String, "0+")
    group_epoch: int = wire(Int32, "0+")
    assignment_epoch: int = wire(Int32, "0+")
    topology: Topology | None = wire(Topology, "0+", nullable="0+", default=None)
    members: list[Member] = wire(Array(Member), "0+")
    authorized_operations: int = wire(Int32, "0+", default=-(2**31))
    topology_description: TopologyDescription | None = wire(
        TopologyDescription, "1+", nullable="1+", default=None
    )
    topology_description_status: int = wire(Int8, "1+")
    assignor_name: str | None = wire(String, "1+", nullable="1+", default=None, ignorable=True)


@message(api_key=ApiKeys.STREAMS_GROUP_DESCRIBE, kind="response", versions="0-1", flexible="0+")
class StreamsGroupDescribeResponse(Message):
    """Version 1 can tell the description of the topology."""

    throttle_time_ms: int = wire(Int32, "0+")
    groups: list[DescribedGroup] = wire(Array(DescribedGroup), "0+")
