"""SyncGroup: hand over and receive assignments in the classic protocol."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Bytes, Int16, Int32, String


@structure
class SyncGroupRequestAssignment(Structure):
    member_id: str = wire(String, "0+")
    assignment: bytes = wire(Bytes, "0+")


@message(api_key=ApiKeys.SYNC_GROUP, kind="request", versions="0-5", flexible="4+")
class SyncGroupRequest(Message):
    """The leader alone sends `assignments`."""

    group_id: str = wire(String, "0+")
    generation_id: int = wire(Int32, "0+")
    member_id: str = wire(String, "0+")
    group_instance_id: str | None = wire(String, "3+", nullable="3+", default=None)
    protocol_type: str | None = wire(String, "5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = wire(String, "5+", nullable="5+", default=None, ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = wire(Array(SyncGroupRequestAssignment), "0+")


@message(api_key=ApiKeys.SYNC_GROUP, kind="response", versions="0-5", flexible="4+")
class SyncGroupResponse(Message):
    """The member's own assignment."""

    throttle_time_ms: int = wire(Int32, "1+", ignorable=True)
    error_code: int = wire(Int16, "0+")
    protocol_type: str | None = wire(String, "5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = wire(String, "5+", nullable="5+", default=None, ignorable=True)
    assignment: bytes = wire(Bytes, "0+")
