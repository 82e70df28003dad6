"""DeleteAcls: remove access rules by filter."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Int8, Int16, Int32, String


@structure
class DeleteAclsFilter(Structure):
    resource_type_filter: int = wire(Int8, "0+")
    resource_name_filter: str | None = wire(String, "0+", nullable="0+")
    pattern_type_filter: int = wire(Int8, "1+", default=3)
    principal_filter: str | None = wire(String, "0+", nullable="0+")
    host_filter: str | None = wire(String, "0+", nullable="0+")
    operation: int = wire(Int8, "0+")
    permission_type: int = wire(Int8, "0+")


@message(api_key=ApiKeys.DELETE_ACLS, kind="request", versions="1-3", flexible="2+")
class DeleteAclsRequest(Message):
    """Version 1 brought pattern types (KIP-290)."""

    filters: list[DeleteAclsFilter] = wire(Array(DeleteAclsFilter), "0+")


@structure
class DeleteAclsMatchingAcl(Structure):
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+")
    resource_type: int = wire(Int8, "0+")
    resource_name: str = wire(String, "0+")
    pattern_type: int = wire(Int8, "1+", default=3)
    principal: str = wire(String, "0+")
    host: str = wire(String, "0+")
    operation: int = wire(Int8, "0+")
    permission_type: int = wire(Int8, "0+")


@structure
class DeleteAclsFilterResult(Structure):
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+")
    matching_acls: list[DeleteAclsMatchingAcl] = wire(Array(DeleteAclsMatchingAcl), "0+")


@message(api_key=ApiKeys.DELETE_ACLS, kind="response", versions="1-3", flexible="2+")
class DeleteAclsResponse(Message):
    """The rules removed, by filter."""

    throttle_time_ms: int = wire(Int32, "0+")
    filter_results: list[DeleteAclsFilterResult] = wire(Array(DeleteAclsFilterResult), "0+")
