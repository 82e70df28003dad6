"""SASL mechanisms of a client, without their I/O: tokens out, challenges in; and who makes them."""

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


class SaslCredentials(Protocol):
    """Makes the mechanism for each exchange. Belongs to one thread, but for `update`."""

    @property
    def mechanism(self) -> str:
        """The name of the mechanism, as "SCRAM-SHA-512"."""

    def new_mechanism(self, host: str) -> SaslMechanism:
        """Return the mechanism for one exchange with the broker at `host`.

        Raises OSError if there are no credentials for a while.
        """

    def update(self, username: str, password: str) -> None:
        """Use another user and password for the exchanges from now on. Any thread.

        Raises IllegalStateError for a mechanism without a password, ConfigError for what it cannot send.
        """

    def close(self) -> None:
        """Let go of what keeps the credentials fresh."""


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
