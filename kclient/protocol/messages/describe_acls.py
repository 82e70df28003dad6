"""DescribeAcls: find access rules."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Int8, Int16, Int32, String


@message(api_key=ApiKeys.DESCRIBE_ACLS, kind="request", versions="1-3", flexible="2+")
class DescribeAclsRequest(Message):
    """Version 1 brought pattern types (KIP-290)."""

    resource_type_filter: int = wire(Int8, "0+")
    resource_name_filter: str | None = wire(String, "0+", nullable="0+")
    pattern_type_filter: int = wire(Int8, "1+", default=3)
    principal_filter: str | None = wire(String, "0+", nullable="0+")
    host_filter: str | None = wire(String, "0+", nullable="0+")
    operation: int = wire(Int8, "0+")
    permission_type: int = wire(Int8, "0+")


@structure
class AclDescription(Structure):
    principal: str = wire(String, "0+")
    host: str = wire(String, "0+")
    operation: int = wire(Int8, "0+")
    permission_type: int = wire(Int8, "0+")


@structure
class DescribeAclsResource(Structure):
    resource_type: int = wire(Int8, "0+")
    resource_name: str = wire(String, "0+")
    pattern_type: int = wire(Int8, "1+", default=3)
    acls: list[AclDescription] = wire(Array(AclDescription), "0+")


@message(api_key=ApiKeys.DESCRIBE_ACLS, kind="response", versions="1-3", flexible="2+")
class DescribeAclsResponse(Message):
    """The rules, by resource."""

    throttle_time_ms: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+")
    resources: list[DescribeAclsResource] = wire(Array(DescribeAclsResource), "0+")
