"""IncrementalAlterConfigs: change single settings."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Bool, Int8, Int16, Int32, String


@structure
class AlterableConfig(Structure):
    name: str = wire(String, "0+")
    config_operation: int = wire(Int8, "0+")
    value: str | None = wire(String, "0+", nullable="0+")


@structure
class AlterConfigsResource(Structure):
    resource_type: int = wire(Int8, "0+")
    resource_name: str = wire(String, "0+")
    configs: list[AlterableConfig] = wire(Array(AlterableConfig), "0+")


@message(api_key=ApiKeys.INCREMENTAL_ALTER_CONFIGS, kind="request", versions="0-1", flexible="1+")
class IncrementalAlterConfigsRequest(Message):
    """Sets, deletes, appends or subtracts (KIP-339)."""

    resources: list[AlterConfigsResource] = wire(Array(AlterConfigsResource), "0+")
    validate_only: bool = wire(Bool, "0+")


@structure
class AlterConfigsResourceResponse(Structure):
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+")
    resource_type: int = wire(Int8, "0+")
    resource_name: str = wire(String, "0+")


@message(api_key=ApiKeys.INCREMENTAL_ALTER_CONFIGS, kind="response", versions="0-1", flexible="1+")
class IncrementalAlterConfigsResponse(Message):
    """An error code for each resource."""

    throttle_time_ms: int = wire(Int32, "0+")
    responses: list[AlterConfigsResourceResponse] = wire(Array(AlterConfigsResourceResponse), "0+")
