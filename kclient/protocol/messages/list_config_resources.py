"""ListConfigResources: names of what has settings of its own."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Int8, Int16, Int32, String


@message(api_key=ApiKeys.LIST_CONFIG_RESOURCES, kind="request", versions="0-1", flexible="0+")
class ListConfigResourcesRequest(Message):
    """Version 0 was ListClientMetricsResources; 1 takes types of resources."""

    resource_types: list[int] = wire(Array(Int8), "1+")


@structure
class ConfigResource(Structure):
    resource_name: str = wire(String, "0+")
    resource_type: int = wire(Int8, "1+", default=16, ignorable=True)


@message(api_key=ApiKeys.LIST_CONFIG_RESOURCES, kind="response", versions="0-1", flexible="0+")
class ListConfigResourcesResponse(Message):
    """The resources."""

    throttle_time_ms: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "0+")
    config_resources: list[ConfigResource] = wire(Array(ConfigResource), "0+")
