"""LeaveGroup: leave a consumer group of the classic protocol."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Int16, Int32, String


@structure
class MemberIdentity(Structure):
    member_id: str = wire(String, "3+")
    group_instance_id: str | None = wire(String, "3+", nullable="3+", default=None)
    reason: str | None = wire(String, "5+", nullable="5+", default=None, ignorable=True)


@message(api_key=ApiKeys.LEAVE_GROUP, kind="request", versions="0-5", flexible="4+")
class LeaveGroupRequest(Message):
    """Up to version 2 one member leaves, from 3 on several can (KIP-345)."""

    group_id: str = wire(String, "0+")
    member_id: str = wire(String, "0-2")
    members: list[MemberIdentity] = wire(Array(MemberIdentity), "3+")


@structure
class MemberResponse(Structure):
    member_id: str = wire(String, "3+")
    group_instance_id: str | None = wire(String, "3+", nullable="3+")
    error_code: int = wire(Int16, "3+")


@message(api_key=ApiKeys.LEAVE_GROUP, kind="response", versions="0-5", flexible="4+")
class LeaveGroupResponse(Message):
    """Version 3 has an error code for each member."""

    throttle_time_ms: int = wire(Int32, "1+", ignorable=True)
    error_code: int = wire(Int16, "0+")
    members: list[MemberResponse] = wire(Array(MemberResponse), "3+")
