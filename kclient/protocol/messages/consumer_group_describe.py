"""ConsumerGroupDescribe: state and members of groups of the new protocol."""

from __future__ import annotations

from kclient.common.uuid import Uuid
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import UUID, Array, Bool, Int8, Int16, Int32, String


@message(api_key=ApiKeys.CONSUMER_GROUP_DESCRIBE, kind="request", versions="0-1", flexible="0+")
class ConsumerGroupDescribeRequest(Message):
    """Goes to the groups' coordinator (KIP-848)."""

    group_ids: list[str] = wire(Array(String), "0+")
    include_authorized_operations: bool = wire(Bool, "0+")


@structure
class TopicPartitions(Structure):
    topic_id: Uuid = wire(UUID, "0+")
    topic_name: str = wire(String, "0+")
    partitions: list[int] = wire(Array(Int32), "0+")


@structure
class Assignment(Structure):
    topic_partitions: list[TopicPartitions] = wire(Array(TopicPartitions), "0+")


@structure
class Member(Structure):
    member_id: str = wire(String, "0+")
    instance_id: str | None = wire(String, "0+", nullable="0+", default=None)
    rack_id: str | None = wire(String, "0+", nullable="0+", default=None)
    member_epoch: int = wire(Int32, "0+")
    client_id: str = wire(String, "0+")
    client_host: str = wire(String, "0+")
    subscribed_topic_names: list[str] = wire(Array(String), "0+")
    subscribed_topic_regex: str | None = wire(String, "0+", nullable="0+", default=None)
    assignment: Assignment = wire(Assignment, "0+")
    target_assignment: Assignment = wire(Assignment, "0+")
    member_type: int = wire(Int8, "1+", default=-1, ignorable=True)


@structure
class DescribedGroup(Structure):
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+", default=None)
    group_id: str = wire(String, "0+")
    group_state: str = wire(String, "0+")
    group_epoch: int = wire(Int32, "0+")
    assignment_epoch: int = wire(Int32, "0+")
    assignor_name: str = wire(String, "0+")
    members: list[Member] = wire(Array(Member), "0+")
    authorized_operations: int = wire(Int32, "0+", default=-(2**31))


@message(api_key=ApiKeys.CONSUMER_GROUP_DESCRIBE, kind="response", versions="0-1", flexible="0+")
class ConsumerGroupDescribeResponse(Message):
    """Version 1 tells the type of each member."""

    throttle_time_ms: int = wire(Int32, "0+")
    groups: list[DescribedGroup] = wire(Array(DescribedGroup), "0+")
