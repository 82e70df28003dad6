"""SASL mechanisms of a broker, without their I/O: tokens in, challenges out."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Protocol

import attrs

from kclient.broker.security.principal import USER, KafkaPrincipal
from kclient.errors import SaslAuthenticationError


class ServerMechanism(Protocol):
    """One exchange. Used once, by one thread."""

    @property
    def principal(self) -> KafkaPrincipal | None:
        """The client, once it has proven who it is."""

    @property
    def expires_ms(self) -> int | None:
        """Time, since 1970, until which the proof holds; None if it names none."""

    def respond(self, token: bytes) -> bytes:
        """Return what the client gets for `token`. Raises SaslAuthenticationError, whose text the client may know."""


def refused(mechanism: str) -> SaslAuthenticationError:
    """Return the error of credentials that are wrong; it does not tell which part of them."""
    return SaslAuthenticationError(
        f"Authentication failed: invalid credentials with SASL mechanism {mechanism}"
    )


@attrs.define(repr=False)
class PlainServer:
    """PLAIN (RFC 4616) over a table of users and passwords."""

    _users: Mapping[str, str]
    principal: KafkaPrincipal | None = attrs.field(default=None, init=False)
    expires_ms: int | None = attrs.field(default=None, init=False)

    def respond(self, token: bytes) -> bytes:
        parts = token.split(b"\0")
        try:
            authorization_id, user, password = (part.decode("utf-8") for part in parts)
        except ValueError:
            raise SaslAuthenticationError(
                "Authentication failed: a token of PLAIN has an authorization id, a user and a password"
            ) from None
        known = self._users.get(user)
        # Compared with something in any case, so that the time taken does not tell which users there are.
        right = hmac.compare_digest((known or "").encode(), password.encode())
        if known is None or not right or not user:
            raise refused("PLAIN")
        if authorization_id not in {"", user}:
            raise SaslAuthenticationError(
                "Authentication failed: the client asks for another authorization id than its user"
            )
        self.principal = KafkaPrincipal(USER, user)
        return b""
