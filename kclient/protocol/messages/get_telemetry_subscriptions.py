"""GetTelemetrySubscriptions: which metrics a broker wants from the client."""

from __future__ import annotations

from kclient.common.uuid import Uuid
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, message, wire
from kclient.protocol.wire import UUID, Array, Bool, Int8, Int16, Int32, String


@message(api_key=ApiKeys.GET_TELEMETRY_SUBSCRIPTIONS, kind="request", versions="0", flexible="0+")
class GetTelemetrySubscriptionsRequest(Message):
    """The first request has an instance id of zero (KIP-714)."""

    client_instance_id: Uuid = wire(UUID, "0+")


@message(api_key=ApiKeys.GET_TELEMETRY_SUBSCRIPTIONS, kind="response", versions="0", flexible="0+")
class GetTelemetrySubscriptionsResponse(Message):
    """The metrics, how often, and in which compressions."""

    throttle_time_ms: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "0+")
    client_instance_id: Uuid = wire(UUID, "0+")
    subscription_id: int = wire(Int32, "0+")
    accepted_compression_types: list[int] = wire(Array(Int8), "0+")
    push_interval_ms: int = wire(Int32, "0+")
    telemetry_max_bytes: int = wire(Int32, "0+")
    delta_temporality: bool = wire(Bool, "0+")
    requested_metrics: list[str] = wire(Array(String), "0+")
