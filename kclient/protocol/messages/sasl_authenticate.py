"""SaslAuthenticate: one step of a SASL exchange."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, message, wire
from kclient.protocol.wire import Bytes, Int16, Int64, String


@message(api_key=ApiKeys.SASL_AUTHENTICATE, kind="request", versions="0-2", flexible="2+")
class SaslAuthenticateRequest(Message):
    """Carries a token of the mechanism."""

    auth_bytes: bytes = wire(Bytes, "0+")


@message(api_key=ApiKeys.SASL_AUTHENTICATE, kind="response", versions="0-2", flexible="2+")
class SaslAuthenticateResponse(Message):
    """Version 1 tells how long the session may last (KIP-368)."""

    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+")
    auth_bytes: bytes = wire(Bytes, "0+")
    session_lifetime_ms: int = wire(Int64, "1+", ignorable=True)
