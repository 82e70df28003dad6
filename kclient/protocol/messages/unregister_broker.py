"""UnregisterBroker: remove a broker that is gone for good."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, message, wire
from kclient.protocol.wire import Int16, Int32, String


@message(api_key=ApiKeys.UNREGISTER_BROKER, kind="request", versions="0", flexible="0+")
class UnregisterBrokerRequest(Message):
    """Names the broker by its id."""

    broker_id: int = wire(Int32, "0+")


@message(api_key=ApiKeys.UNREGISTER_BROKER, kind="response", versions="0", flexible="0+")
class UnregisterBrokerResponse(Message):
    """An error code."""

    throttle_time_ms: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+")
