"""CreateAcls: add access rules."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Int8, Int16, Int32, String


@structure
class AclCreation(Structure):
    resource_type: int = wire(Int8, "0+")
    resource_name: str = wire(String, "0+")
    resource_pattern_type: int = wire(Int8, "1+", default=3)
    principal: str = wire(String, "0+")
    host: str = wire(String, "0+")
    operation: int = wire(Int8, "0+")
    permission_type: int = wire(Int8, "0+")


@message(api_key=ApiKeys.CREATE_ACLS, kind="request", versions="1-3", flexible="2+")
class CreateAclsRequest(Message):
    """Version 1 brought pattern types (KIP-290)."""

    creations: list[AclCreation] = wire(Array(AclCreation), "0+")


@structure
class AclCreationResult(Structure):
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+")


@message(api_key=ApiKeys.CREATE_ACLS, kind="response", versions="1-3", flexible="2+")
class CreateAclsResponse(Message):
    """An error code for each rule."""

    throttle_time_ms: int = wire(Int32, "0+")
    results: list[AclCreationResult] = wire(Array(AclCreationResult), "0+")
