"""DescribeClientQuotas: find quotas."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Bool, Float64, Int8, Int16, Int32, String


@structure
class ComponentData(Structure):
    entity_type: str = wire(String, "0+")
    match_type: int = wire(Int8, "0+")
    match: str | None = wire(String, "0+", nullable="0+")


@message(api_key=ApiKeys.DESCRIBE_CLIENT_QUOTAS, kind="request", versions="0-1", flexible="1+")
class DescribeClientQuotasRequest(Message):
    """Matches entities by type and name (KIP-546)."""

    components: list[ComponentData] = wire(Array(ComponentData), "0+")
    strict: bool = wire(Bool, "0+")


@structure
class EntityData(Structure):
    entity_type: str = wire(String, "0+")
    entity_name: str | None = wire(String, "0+", nullable="0+")


@structure
class ValueData(Structure):
    key: str = wire(String, "0+")
    value: float = wire(Float64, "0+")


@structure
class EntryData(Structure):
    entity: list[EntityData] = wire(Array(EntityData), "0+")
    values: list[ValueData] = wire(Array(ValueData), "0+")


@message(api_key=ApiKeys.DESCRIBE_CLIENT_QUOTAS, kind="response", versions="0-1", flexible="1+")
class DescribeClientQuotasResponse(Message):
    """The quotas of the entities that match."""

    throttle_time_ms: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+")
    entries: list[EntryData] | None = wire(Array(EntryData), "0+", nullable="0+")
