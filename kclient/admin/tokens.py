"""Delegation tokens (KIP-48): somebody's identity for a limited time, to be handed to others."""

from __future__ import annotations

import base64
from typing import NoReturn

import attrs


@attrs.frozen
class TokenInformation:
    """A token without its secret. Principals are text as "User:alice"; times are ms since the epoch."""

    token_id: str
    owner: str
    token_requester: str
    renewers: tuple[str, ...]
    issue_timestamp_ms: int
    expiry_timestamp_ms: int
    """End of the token's time, unless it is renewed."""
    max_timestamp_ms: int
    """Latest time that it can be renewed to."""


@attrs.frozen
class DelegationToken:
    """A token. Whoever has its HMAC is its owner, so that is not in the repr, and pickling is refused.

    To authenticate with it: SCRAM with `tokenauth="true"` in sasl.jaas.config, `token_info.token_id` as username and
    `hmac_as_base64` as password.
    """

    token_info: TokenInformation
    hmac: bytes = attrs.field(repr=False)

    @property
    def hmac_as_base64(self) -> str:
        """The HMAC as text, which is the password to authenticate with."""
        return base64.b64encode(self.hmac).decode()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "A DelegationToken is not pickled; hand over its token_id and hmac_as_base64 on purpose"
        )
