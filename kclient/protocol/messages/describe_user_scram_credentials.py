"""DescribeUserScramCredentials: which SCRAM credentials users have."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Int8, Int16, Int32, String


@structure
class UserName(Structure):
    name: str = wire(String, "0+")


@message(api_key=ApiKeys.DESCRIBE_USER_SCRAM_CREDENTIALS, kind="request", versions="0", flexible="0+")
class DescribeUserScramCredentialsRequest(Message):
    """No users (None) stands for all (KIP-554)."""

    users: list[UserName] | None = wire(Array(UserName), "0+", nullable="0+")


@structure
class CredentialInfo(Structure):
    mechanism: int = wire(Int8, "0+")
    iterations: int = wire(Int32, "0+")


@structure
class DescribeUserScramCredentialsResult(Structure):
    user: str = wire(String, "0+")
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+")
    credential_infos: list[CredentialInfo] = wire(Array(CredentialInfo), "0+")


@message(api_key=ApiKeys.DESCRIBE_USER_SCRAM_CREDENTIALS, kind="response", versions="0", flexible="0+")
class DescribeUserScramCredentialsResponse(Message):
    """Mechanisms and iterations; never the credentials."""

    throttle_time_ms: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+")
    results: list[DescribeUserScramCredentialsResult] = wire(Array(DescribeUserScramCredentialsResult), "0+")
