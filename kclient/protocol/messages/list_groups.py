"""ListGroups: the groups that a broker coordinates."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Int16, Int32, String


@message(api_key=ApiKeys.LIST_GROUPS, kind="request", versions="0-5", flexible="3+")
class ListGroupsRequest(Message):
    """Version 4 filters by state (KIP-518), 5 by type (KIP-848)."""

    states_filter: list[str] = wire(Array(String), "4+")
    types_filter: list[str] = wire(Array(String), "5+")


@structure
class ListedGroup(Structure):
    group_id: str = wire(String, "0+")
    protocol_type: str = wire(String, "0+")
    group_state: str = wire(String, "4+", ignorable=True)
    group_type: str = wire(String, "5+", ignorable=True)


@message(api_key=ApiKeys.LIST_GROUPS, kind="response", versions="0-5", flexible="3+")
class ListGroupsResponse(Message):
    """The groups of the answering broker alone."""

    throttle_time_ms: int = wire(Int32, "1+", ignorable=True)
    error_code: int = wire(Int16, "0+")
    groups: list[ListedGroup] = wire(Array(ListedGroup), "0+")
