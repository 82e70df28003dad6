"""ExpireDelegationToken: end a token's life."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, message, wire
from kclient.protocol.wire import Bytes, Int16, Int32, Int64


@message(api_key=ApiKeys.EXPIRE_DELEGATION_TOKEN, kind="request", versions="1-2", flexible="2+")
class ExpireDelegationTokenRequest(Message):
    """A negative period ends it at once."""

    hmac: bytes = wire(Bytes, "0+")
    expiry_time_period_ms: int = wire(Int64, "0+")


@message(api_key=ApiKeys.EXPIRE_DELEGATION_TOKEN, kind="response", versions="1-2", flexible="2+")
class ExpireDelegationTokenResponse(Message):
    """The new time of expiry."""

    error_code: int = wire(Int16, "0+")
    expiry_timestamp_ms: int = wire(Int64, "0+")
    throttle_time_ms: int = wire(Int32, "0+")
