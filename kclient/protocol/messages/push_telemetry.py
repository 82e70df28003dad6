"""PushTelemetry: send metrics to a broker."""

from __future__ import annotations

from kclient.common.uuid import Uuid
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, message, wire
from kclient.protocol.wire import UUID, Bool, Bytes, Int8, Int16, Int32


@message(api_key=ApiKeys.PUSH_TELEMETRY, kind="request", versions="0", flexible="0+")
class PushTelemetryRequest(Message):
    """`metrics` is in the OpenTelemetry format, compressed (KIP-714)."""

    client_instance_id: Uuid = wire(UUID, "0+")
    subscription_id: int = wire(Int32, "0+")
    terminating: bool = wire(Bool, "0+")
    compression_type: int = wire(Int8, "0+")
    metrics: bytes = wire(Bytes, "0+")


@message(api_key=ApiKeys.PUSH_TELEMETRY, kind="response", versions="0", flexible="0+")
class PushTelemetryResponse(Message):
    """An error code."""

    throttle_time_ms: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "0+")
