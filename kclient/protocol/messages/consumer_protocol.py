"""Messages between members of a group, through JoinGroup and SyncGroup; the version comes before each."""

from __future__ import annotations

from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Bytes, Int32, String


@structure
class ConsumerProtocolSubscriptionTopicPartition(Structure):
    topic: str = wire(String, "1+")
    partitions: list[int] = wire(Array(Int32), "1+")


@message(kind="data", versions="0-3", flexible="none")
class ConsumerProtocolSubscription(Message):
    """Version 1 brought owned partitions (KIP-429), 2 the generation (KIP-792), 3 the rack (KIP-881)."""

    topics: list[str] = wire(Array(String), "0+")
    user_data: bytes | None = wire(Bytes, "0+", nullable="0+", default=None)
    owned_partitions: list[ConsumerProtocolSubscriptionTopicPartition] = wire(
        Array(ConsumerProtocolSubscriptionTopicPartition), "1+", ignorable=True
    )
    generation_id: int = wire(Int32, "2+", default=-1, ignorable=True)
    rack_id: str | None = wire(String, "3+", nullable="3+", default=None, ignorable=True)


@structure
class ConsumerProtocolAssignmentTopicPartition(Structure):
    topic: str = wire(String, "0+")
    partitions: list[int] = wire(Array(Int32), "0+")


@message(kind="data", versions="0-3", flexible="none")
class ConsumerProtocolAssignment(Message):
    """The partitions that a member is to read."""

    assigned_partitions: list[ConsumerProtocolAssignmentTopicPartition] = wire(
        Array(ConsumerProtocolAssignmentTopicPartition), "0+"
    )
    user_data: bytes | None = wire(Bytes, "0+", nullable="0+", default=None)
