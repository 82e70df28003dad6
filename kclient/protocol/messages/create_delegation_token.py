"""CreateDelegationToken: obtain a token for others to authenticate with."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Bytes, Int16, Int32, Int64, String


@structure
class CreatableRenewers(Structure):
    principal_type: str = wire(String, "0+")
    principal_name: str = wire(String, "0+")


@message(api_key=ApiKeys.CREATE_DELEGATION_TOKEN, kind="request", versions="1-3", flexible="2+")
class CreateDelegationTokenRequest(Message):
    """Version 3 can name another owner (KIP-373)."""

    owner_principal_type: str | None = wire(String, "3+", nullable="3+")
    owner_principal_name: str | None = wire(String, "3+", nullable="3+")
    renewers: list[CreatableRenewers] = wire(Array(CreatableRenewers), "0+")
    max_lifetime_ms: int = wire(Int64, "0+")


@message(api_key=ApiKeys.CREATE_DELEGATION_TOKEN, kind="response", versions="1-3", flexible="2+")
class CreateDelegationTokenResponse(Message):
    """The token; its HMAC is a secret."""

    error_code: int = wire(Int16, "0+")
    principal_type: str = wire(String, "0+")
    principal_name: str = wire(String, "0+")
    token_requester_principal_type: str = wire(String, "3+")
    token_requester_principal_name: str = wire(String, "3+")
    issue_timestamp_ms: int = wire(Int64, "0+")
    expiry_timestamp_ms: int = wire(Int64, "0+")
    max_timestamp_ms: int = wire(Int64, "0+")
    token_id: str = wire(String, "0+")
    hmac: bytes = wire(Bytes, "0+")
    throttle_time_ms: int = wire(Int32, "0+")
