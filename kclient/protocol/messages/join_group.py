"""JoinGroup: enter a consumer group of the classic protocol."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Bool, Bytes, Int16, Int32, String


@structure
class JoinGroupRequestProtocol(Structure):
    name: str = wire(String, "0+")
    metadata: bytes = wire(Bytes, "0+")


@message(api_key=ApiKeys.JOIN_GROUP, kind="request", versions="0-9", flexible="6+")
class JoinGroupRequest(Message):
    """Version 4 makes a new member come back with the id it is given (KIP-394), 5 brought static members
    (KIP-345).
    """

    group_id: str = wire(String, "0+")
    session_timeout_ms: int = wire(Int32, "0+")
    # Version 0 lacks it: there the session timeout counts for both.
    rebalance_timeout_ms: int = wire(Int32, "1+", default=-1, ignorable=True)
    member_id: str = wire(String, "0+")
    group_instance_id: str | None = wire(String, "5+", nullable="5+", default=None)
    protocol_type: str = wire(String, "0+")
    protocols: list[JoinGroupRequestProtocol] = wire(Array(JoinGroupRequestProtocol), "0+")
    reason: str | None = wire(String, "8+", nullable="8+", default=None, ignorable=True)


@structure
class JoinGroupResponseMember(Structure):
    member_id: str = wire(String, "0+")
    group_instance_id: str | None = wire(String, "5+", nullable="5+", default=None, ignorable=True)
    metadata: bytes = wire(Bytes, "0+")


@message(api_key=ApiKeys.JOIN_GROUP, kind="response", versions="0-9", flexible="6+")
class JoinGroupResponse(Message):
    """The leader alone receives `members`."""

    throttle_time_ms: int = wire(Int32, "2+", ignorable=True)
    error_code: int = wire(Int16, "0+")
    generation_id: int = wire(Int32, "0+", default=-1)
    protocol_type: str | None = wire(String, "7+", nullable="7+", default=None, ignorable=True)
    protocol_name: str | None = wire(String, "0+", nullable="7+")
    leader: str = wire(String, "0+")
    # Set when a static leader is back and keeps the assignment there is (KIP-814).
    skip_assignment: bool = wire(Bool, "9+")
    member_id: str = wire(String, "0+")
    members: list[JoinGroupResponseMember] = wire(Array(JoinGroupResponseMember), "0+")
