"""AlterUserScramCredentials: set and delete SCRAM credentials."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Bytes, Int8, Int16, Int32, String


@structure
class ScramCredentialDeletion(Structure):
    name: str = wire(String, "0+")
    mechanism: int = wire(Int8, "0+")


@structure
class ScramCredentialUpsertion(Structure):
    name: str = wire(String, "0+")
    mechanism: int = wire(Int8, "0+")
    iterations: int = wire(Int32, "0+")
    salt: bytes = wire(Bytes, "0+")
    salted_password: bytes = wire(Bytes, "0+")


@message(api_key=ApiKeys.ALTER_USER_SCRAM_CREDENTIALS, kind="request", versions="0", flexible="0+")
class AlterUserScramCredentialsRequest(Message):
    """Salted passwords are computed by the client (KIP-554)."""

    deletions: list[ScramCredentialDeletion] = wire(Array(ScramCredentialDeletion), "0+")
    upsertions: list[ScramCredentialUpsertion] = wire(Array(ScramCredentialUpsertion), "0+")


@structure
class AlterUserScramCredentialsResult(Structure):
    user: str = wire(String, "0+")
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+")


@message(api_key=ApiKeys.ALTER_USER_SCRAM_CREDENTIALS, kind="response", versions="0", flexible="0+")
class AlterUserScramCredentialsResponse(Message):
    """An error code for each user."""

    throttle_time_ms: int = wire(Int32, "0+")
    results: list[AlterUserScramCredentialsResult] = wire(Array(AlterUserScramCredentialsResult), "0+")
