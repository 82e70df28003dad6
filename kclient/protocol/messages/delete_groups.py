"""DeleteGroups: delete empty groups with their offsets."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Int16, Int32, String


@message(api_key=ApiKeys.DELETE_GROUPS, kind="request", versions="0-3", flexible="2+")
class DeleteGroupsRequest(Message):
    """Goes to the groups' coordinator."""

    groups_names: list[str] = wire(Array(String), "0+")


@structure
class DeletableGroupResult(Structure):
    group_id: str = wire(String, "0+")
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "3+", nullable="3+", default=None, ignorable=True)


@message(api_key=ApiKeys.DELETE_GROUPS, kind="response", versions="0-3", flexible="2+")
class DeleteGroupsResponse(Message):
    """An error code for each group."""

    throttle_time_ms: int = wire(Int32, "0+")
    results: list[DeletableGroupResult] = wire(Array(DeletableGroupResult), "0+")
