"""ListPartitionReassignments: the moves that are going on."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Int16, Int32, String


@structure
class ListPartitionReassignmentsTopics(Structure):
    name: str = wire(String, "0+")
    partition_indexes: list[int] = wire(Array(Int32), "0+")


@message(api_key=ApiKeys.LIST_PARTITION_REASSIGNMENTS, kind="request", versions="0", flexible="0+")
class ListPartitionReassignmentsRequest(Message):
    """No topics (None) stands for all."""

    timeout_ms: int = wire(Int32, "0+", default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = wire(
        Array(ListPartitionReassignmentsTopics), "0+", nullable="0+", default=None
    )


@structure
class OngoingPartitionReassignment(Structure):
    partition_index: int = wire(Int32, "0+")
    replicas: list[int] = wire(Array(Int32), "0+")
    adding_replicas: list[int] = wire(Array(Int32), "0+")
    removing_replicas: list[int] = wire(Array(Int32), "0+")


@structure
class OngoingTopicReassignment(Structure):
    name: str = wire(String, "0+")
    partitions: list[OngoingPartitionReassignment] = wire(Array(OngoingPartitionReassignment), "0+")


@message(api_key=ApiKeys.LIST_PARTITION_REASSIGNMENTS, kind="response", versions="0", flexible="0+")
class ListPartitionReassignmentsResponse(Message):
    """The replicas to add and to remove of each partition."""

    throttle_time_ms: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+")
    topics: list[OngoingTopicReassignment] = wire(Array(OngoingTopicReassignment), "0+")
