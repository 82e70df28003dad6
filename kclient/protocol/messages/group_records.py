"""The records of `__consumer_offsets`: before each key comes the type of the record, before each value its version."""

from __future__ import annotations

from kclient.common.uuid import Uuid
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import UUID, Array, Bytes, Int32, Int64, String


@message(kind="coordinator-key", versions="0", flexible="none")
class OffsetCommitKey(Message):
    """Key of a committed offset, of record type 1; the legacy type 0 has the same fields."""

    group: str = wire(String, "0")
    topic: str = wire(String, "0")
    partition: int = wire(Int32, "0")


@message(kind="coordinator-value", versions="0-4", flexible="4+")
class OffsetCommitValue(Message):
    """A committed offset. Version 1 alone has a time of expiry, 3 brought the leader epoch."""

    offset: int = wire(Int64, "0+")
    leader_epoch: int = wire(Int32, "3+", default=-1, ignorable=True)
    metadata: str = wire(String, "0+")
    commit_timestamp: int = wire(Int64, "0+")
    expire_timestamp: int = wire(Int64, "1", default=-1, ignorable=True)
    topic_id: Uuid = wire(UUID, "4+", tag=0, ignorable=True)


@message(kind="coordinator-key", versions="0", flexible="none")
class GroupMetadataKey(Message):
    """Key of the metadata of a group of the classic protocol, of record type 2."""

    group: str = wire(String, "0")


@structure
class MemberMetadata(Structure):
    member_id: str = wire(String, "0+")
    group_instance_id: str | None = wire(String, "3+", nullable="3+", default=None, ignorable=True)
    client_id: str = wire(String, "0+")
    client_host: str = wire(String, "0+")
    rebalance_timeout: int = wire(Int32, "1+", default=-1, ignorable=True)
    session_timeout: int = wire(Int32, "0+")
    subscription: bytes = wire(Bytes, "0+")
    assignment: bytes = wire(Bytes, "0+")


@message(kind="coordinator-value", versions="0-4", flexible="4+")
class GroupMetadataValue(Message):
    """The metadata of a group of the classic protocol."""

    protocol_type: str = wire(String, "0+")
    generation: int = wire(Int32, "0+")
    protocol: str | None = wire(String, "0+", nullable="0+")
    leader: str | None = wire(String, "0+", nullable="0+")
    current_state_timestamp: int = wire(Int64, "2+", default=-1, ignorable=True)
    members: list[MemberMetadata] = wire(Array(MemberMetadata), "0+")
