"""SaslHandshake: choose a SASL mechanism."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, message, wire
from kclient.protocol.wire import Array, Int16, String


@message(api_key=ApiKeys.SASL_HANDSHAKE, kind="request", versions="0-1", flexible="none")
class SaslHandshakeRequest(Message):
    """Version 0 is followed by raw SASL tokens, 1 by SaslAuthenticate requests (KIP-152)."""

    mechanism: str = wire(String, "0+")


@message(api_key=ApiKeys.SASL_HANDSHAKE, kind="response", versions="0-1", flexible="none")
class SaslHandshakeResponse(Message):
    """The mechanisms that the broker has."""

    error_code: int = wire(Int16, "0+")
    mechanisms: list[str] = wire(Array(String), "0+")
