"""DescribeDelegationToken: list tokens."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Bytes, Int16, Int32, Int64, String


@structure
class DescribeDelegationTokenOwner(Structure):
    principal_type: str = wire(String, "0+")
    principal_name: str = wire(String, "0+")


@message(api_key=ApiKeys.DESCRIBE_DELEGATION_TOKEN, kind="request", versions="1-3", flexible="2+")
class DescribeDelegationTokenRequest(Message):
    """No owners (None) stands for all."""

    owners: list[DescribeDelegationTokenOwner] | None = wire(
        Array(DescribeDelegationTokenOwner), "0+", nullable="0+"
    )


@structure
class DescribedDelegationTokenRenewer(Structure):
    principal_type: str = wire(String, "0+")
    principal_name: str = wire(String, "0+")


@structure
class DescribedDelegationToken(Structure):
    principal_type: str = wire(String, "0+")
    principal_name: str = wire(String, "0+")
    token_requester_principal_type: str = wire(String, "3+")
    token_requester_principal_name: str = wire(String, "3+")
    issue_timestamp: int = wire(Int64, "0+")
    expiry_timestamp: int = wire(Int64, "0+")
    max_timestamp: int = wire(Int64, "0+")
    token_id: str = wire(String, "0+")
    hmac: bytes = wire(Bytes, "0+")
    renewers: list[DescribedDelegationTokenRenewer] = wire(Array(DescribedDelegationTokenRenewer), "0+")


@message(api_key=ApiKeys.DESCRIBE_DELEGATION_TOKEN, kind="response", versions="1-3", flexible="2+")
class DescribeDelegationTokenResponse(Message):
    """The tokens that the caller may see; their HMACs are secrets."""

    error_code: int = wire(Int16, "0+")
    tokens: list[DescribedDelegationToken] = wire(Array(DescribedDelegationToken), "0+")
    throttle_time_ms: int = wire(Int32, "0+")
