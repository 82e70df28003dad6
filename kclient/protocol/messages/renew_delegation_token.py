"""RenewDelegationToken: extend a token's life."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, message, wire
from kclient.protocol.wire import Bytes, Int16, Int32, Int64


@message(api_key=ApiKeys.RENEW_DELEGATION_TOKEN, kind="request", versions="1-2", flexible="2+")
class RenewDelegationTokenRequest(Message):
    """Names the token by its HMAC."""

    hmac: bytes = wire(Bytes, "0+")
    renew_period_ms: int = wire(Int64, "0+")


@message(api_key=ApiKeys.RENEW_DELEGATION_TOKEN, kind="response", versions="1-2", flexible="2+")
class RenewDelegationTokenResponse(Message):
    """The new time of expiry."""

    error_code: int = wire(Int16, "0+")
    expiry_timestamp_ms: int = wire(Int64, "0+")
    throttle_time_ms: int = wire(Int32, "0+")
