"""ConsumerGroupHeartbeat: join, stay in and leave a group of the new protocol."""

from __future__ import annotations

from kclient.common.uuid import Uuid
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import UUID, Array, Int16, Int32, String


@structure
class ConsumerGroupHeartbeatRequestTopicPartitions(Structure):
    topic_id: Uuid = wire(UUID, "0+")
    partitions: list[int] = wire(Array(Int32), "0+")


@message(api_key=ApiKeys.CONSUMER_GROUP_HEARTBEAT, kind="request", versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatRequest(Message):
    """A field that is None is unchanged since the last heartbeat (KIP-848). Version 1 brought server-side
    patterns.
    """

    group_id: str = wire(String, "0+")
    member_id: str = wire(String, "0+")
    member_epoch: int = wire(Int32, "0+")
    instance_id: str | None = wire(String, "0+", nullable="0+", default=None)
    rack_id: str | None = wire(String, "0+", nullable="0+", default=None)
    rebalance_timeout_ms: int = wire(Int32, "0+", default=-1)
    subscribed_topic_names: list[str] | None = wire(Array(String), "0+", nullable="0+", default=None)
    subscribed_topic_regex: str | None = wire(String, "1+", nullable="1+", default=None)
    server_assignor: str | None = wire(String, "0+", nullable="0+", default=None)
    topic_partitions: list[ConsumerGroupHeartbeatRequestTopicPartitions] | None = wire(
        Array(ConsumerGroupHeartbeatRequestTopicPartitions), "0+", nullable="0+", default=None
    )


@structure
class ConsumerGroupHeartbeatResponseTopicPartitions(Structure):
    topic_id: Uuid = wire(UUID, "0+")
    partitions: list[int] = wire(Array(Int32), "0+")


@structure
class Assignment(Structure):
    topic_partitions: list[ConsumerGroupHeartbeatResponseTopicPartitions] = wire(
        Array(ConsumerGroupHeartbeatResponseTopicPartitions), "0+"
    )


@message(api_key=ApiKeys.CONSUMER_GROUP_HEARTBEAT, kind="response", versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatResponse(Message):
    """The assignment is None if it has not changed."""

    throttle_time_ms: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+", default=None)
    member_id: str | None = wire(String, "0+", nullable="0+", default=None)
    member_epoch: int = wire(Int32, "0+")
    heartbeat_interval_ms: int = wire(Int32, "0+")
    assignment: Assignment | None = wire(Assignment, "0+", nullable="0+", default=None)
