"""SASL mechanisms of a client, without their I/O: tokens out, challenges in."""

from __future__ import annotations

from typing import Protocol

import attrs


class SaslMechanism(Protocol):
    """One exchange. Used once, by one thread."""

    @property
    def complete(self) -> bool:
        """True once this side has nothing more to send, and nothing to check."""

    def first(self) -> bytes:
        """Return the first token."""

    def next(self, challenge: bytes) -> bytes | None:
        """Return the answer to a challenge, None if the exchange is over. Raises SaslAuthenticationError."""


@attrs.define(repr=False)
class PlainMechanism:
    """PLAIN (RFC 4616): user and password as they are, so the connection should be TLS."""

    _username: str
    _password: str
    complete: bool = attrs.field(default=False, init=False)

    def first(self) -> bytes:
        return f"\0{self._username}\0{self._password}".encode()

    def next(self, challenge: bytes) -> bytes | None:
        del challenge  # always empty
        self.complete = True
        return None
