"""StreamsGroupTopologyDescriptionUpdate: store the description of a Streams group's topology."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Int8, Int16, Int32, String


@structure
class TopologyDescriptionNode(Structure):
    name: str = wire(String, "0+")
    node_type: int = wire(Int8, "0+")
    source_topics: list[str] = wire(Array(String), "0+")
    sink_topic: str | None = wire(String, "0+", nullable="0+", default=None)
    stores: list[str] = wire(Array(String), "0+")
    successors: list[str] = wire(Array(String), "0+")


@structure
class TopologyDescriptionSubtopology(Structure):
    subtopology_id: str = wire(String, "0+")
    nodes: list[TopologyDescriptionNode] = wire(Array(TopologyDescriptionNode), "0+")


@structure
class TopologyDescriptionGlobalStore(Structure):
    source: TopologyDescriptionNode = wire(TopologyDescriptionNode, "0+")
    processor: TopologyDescriptionNode = wire(TopologyDescriptionNode, "0+")


@structure
class TopologyDescription(Structure):
    subtopologies: list[TopologyDescriptionSubtopology] = wire(Array(TopologyDescriptionSubtopology), "0+")
    global_stores: list[TopologyDescriptionGlobalStore] = wire(Array(TopologyDescriptionGlobalStore), "0+")


@message(
    api_key=ApiKeys.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE, kind="request", versions="0", flexible="0+"
)
class StreamsGroupTopologyDescriptionUpdateRequest(Message):
    """Sent by a member that the coordinator asked for it."""

    group_id: str = wire(String, "0+")
    member_id: str = wire(String, "0+")
    topology_epoch: int = wire(Int32, "0+")
    topology_description: TopologyDescription = wire(TopologyDescription, "0+")


@message(
    api_key=ApiKeys.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE, kind="response", versions="0", flexible="0+"
)
class StreamsGroupTopologyDescriptionUpdateResponse(Message):
    """An error code."""

    throttle_time_ms: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+", default=None)
