"""DescribeGroups: state and members of groups of the classic protocol."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Bool, Bytes, Int16, Int32, String


@message(api_key=ApiKeys.DESCRIBE_GROUPS, kind="request", versions="0-6", flexible="5+")
class DescribeGroupsRequest(Message):
    """Version 3 can ask for authorized operations (KIP-430)."""

    groups: list[str] = wire(Array(String), "0+")
    include_authorized_operations: bool = wire(Bool, "3+")


@structure
class DescribedGroupMember(Structure):
    member_id: str = wire(String, "0+")
    group_instance_id: str | None = wire(String, "4+", nullable="4+", default=None, ignorable=True)
    client_id: str = wire(String, "0+")
    client_host: str = wire(String, "0+")
    member_metadata: bytes = wire(Bytes, "0+")
    member_assignment: bytes = wire(Bytes, "0+")


@structure
class DescribedGroup(Structure):
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "6+", nullable="6+", default=None)
    group_id: str = wire(String, "0+")
    group_state: str = wire(String, "0+")
    protocol_type: str = wire(String, "0+")
    protocol_data: str = wire(String, "0+")
    members: list[DescribedGroupMember] = wire(Array(DescribedGroupMember), "0+")
    authorized_operations: int = wire(Int32, "3+", default=-(2**31))


@message(api_key=ApiKeys.DESCRIBE_GROUPS, kind="response", versions="0-6", flexible="5+")
class DescribeGroupsResponse(Message):
    """Version 6 says with an error when a group does not exist (KIP-1043)."""

    throttle_time_ms: int = wire(Int32, "1+", ignorable=True)
    groups: list[DescribedGroup] = wire(Array(DescribedGroup), "0+")
