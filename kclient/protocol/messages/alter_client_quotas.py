"""AlterClientQuotas: change quotas."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Bool, Float64, Int16, Int32, String


@structure
class AlterClientQuotasRequestEntityData(Structure):
    entity_type: str = wire(String, "0+")
    entity_name: str | None = wire(String, "0+", nullable="0+")


@structure
class OpData(Structure):
    key: str = wire(String, "0+")
    value: float = wire(Float64, "0+")
    remove: bool = wire(Bool, "0+")


@structure
class AlterClientQuotasRequestEntryData(Structure):
    entity: list[AlterClientQuotasRequestEntityData] = wire(Array(AlterClientQuotasRequestEntityData), "0+")
    ops: list[OpData] = wire(Array(OpData), "0+")


@message(api_key=ApiKeys.ALTER_CLIENT_QUOTAS, kind="request", versions="0-1", flexible="1+")
class AlterClientQuotasRequest(Message):
    """Sets or removes values (KIP-546)."""

    entries: list[AlterClientQuotasRequestEntryData] = wire(Array(AlterClientQuotasRequestEntryData), "0+")
    validate_only: bool = wire(Bool, "0+")


@structure
class AlterClientQuotasResponseEntityData(Structure):
    entity_type: str = wire(String, "0+")
    entity_name: str | None = wire(String, "0+", nullable="0+")


@structure
class AlterClientQuotasResponseEntryData(Structure):
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+")
    entity: list[AlterClientQuotasResponseEntityData] = wire(Array(AlterClientQuotasResponseEntityData), "0+")


@message(api_key=ApiKeys.ALTER_CLIENT_QUOTAS, kind="response", versions="0-1", flexible="1+")
class AlterClientQuotasResponse(Message):
    """An error code for each entity."""

    throttle_time_ms: int = wire(Int32, "0+")
    entries: list[AlterClientQuotasResponseEntryData] = wire(Array(AlterClientQuotasResponseEntryData), "0+")
