"""ShareGroupHeartbeat: join, stay in and leave a share group."""

from __future__ import annotations

from kclient.common.uuid import Uuid
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import UUID, Array, Int16, Int32, String


@message(api_key=ApiKeys.SHARE_GROUP_HEARTBEAT, kind="request", versions="1", flexible="0+")
class ShareGroupHeartbeatRequest(Message):
    """A field that is None is unchanged since the last heartbeat (KIP-932)."""

    group_id: str = wire(String, "0+")
    member_id: str = wire(String, "0+")
    member_epoch: int = wire(Int32, "0+")
    rack_id: str | None = wire(String, "0+", nullable="0+", default=None)
    subscribed_topic_names: list[str] | None = wire(Array(String), "0+", nullable="0+", default=None)


@structure
class TopicPartitions(Structure):
    topic_id: Uuid = wire(UUID, "0+")
    partitions: list[int] = wire(Array(Int32), "0+")


@structure
class Assignment(Structure):
    topic_partitions: list[TopicPartitions] = wire(Array(TopicPartitions), "0+")


@message(api_key=ApiKeys.SHARE_GROUP_HEARTBEAT, kind="response", versions="1", flexible="0+")
class ShareGroupHeartbeatResponse(Message):
    """The assignment is None if it has not changed."""

    throttle_time_ms: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+", default=None)
    member_id: str | None = wire(String, "0+", nullable="0+", default=None)
    member_epoch: int = wire(Int32, "0+")
    heartbeat_interval_ms: int = wire(Int32, "0+")
    assignment: Assignment | None = wire(Assignment, "0+", nullable="0+", default=None)
