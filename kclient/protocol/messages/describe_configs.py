"""DescribeConfigs: settings of topics, brokers and groups."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Bool, Int8, Int16, Int32, String


@structure
class DescribeConfigsResource(Structure):
    resource_type: int = wire(Int8, "0+")
    resource_name: str = wire(String, "0+")
    configuration_keys: list[str] | None = wire(Array(String), "0+", nullable="0+")


@message(api_key=ApiKeys.DESCRIBE_CONFIGS, kind="request", versions="1-4", flexible="4+")
class DescribeConfigsRequest(Message):
    """Version 1 can ask for synonyms (KIP-226), 3 for documentation (KIP-569)."""

    resources: list[DescribeConfigsResource] = wire(Array(DescribeConfigsResource), "0+")
    include_synonyms: bool = wire(Bool, "1+")
    include_documentation: bool = wire(Bool, "3+")


@structure
class DescribeConfigsSynonym(Structure):
    name: str = wire(String, "1+")
    value: str | None = wire(String, "1+", nullable="1+")
    source: int = wire(Int8, "1+")


@structure
class DescribeConfigsResourceResult(Structure):
    name: str = wire(String, "0+")
    value: str | None = wire(String, "0+", nullable="0+")
    read_only: bool = wire(Bool, "0+")
    config_source: int = wire(Int8, "1+", default=-1, ignorable=True)
    is_sensitive: bool = wire(Bool, "0+")
    synonyms: list[DescribeConfigsSynonym] = wire(Array(DescribeConfigsSynonym), "1+", ignorable=True)
    config_type: int = wire(Int8, "3+", ignorable=True)
    documentation: str | None = wire(String, "3+", nullable="3+", ignorable=True)


@structure
class DescribeConfigsResult(Structure):
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+")
    resource_type: int = wire(Int8, "0+")
    resource_name: str = wire(String, "0+")
    configs: list[DescribeConfigsResourceResult] = wire(Array(DescribeConfigsResourceResult), "0+")


@message(api_key=ApiKeys.DESCRIBE_CONFIGS, kind="response", versions="1-4", flexible="4+")
class DescribeConfigsResponse(Message):
    """The settings with their sources."""

    throttle_time_ms: int = wire(Int32, "0+")
    results: list[DescribeConfigsResult] = wire(Array(DescribeConfigsResult), "0+")
