"""OAUTHBEARER (RFC 7628, KIP-255): a token of an identity provider in the place of a password."""

from __future__ import annotations

import re
from collections.abc import Mapping

import attrs

from kclient.errors import ConfigError, SaslAuthenticationError

_TOKEN = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
_EXTENSION_NAME = re.compile(r"[A-Za-z]+")
_EXTENSION_VALUE = re.compile(r"[\x21-\x7e \t\r\n]+")
_SEPARATOR = "\x01"


@attrs.frozen
class OAuthBearerToken:
    """A token, and the part of its content that a client acts on. Immutable.

    Raises ConfigError for a value that cannot be sent as it is, TypeError for one that is not str.
    """

    value: str = attrs.field(repr=False, validator=attrs.validators.instance_of(str))
    """The token itself, as the broker gets it. Never shown."""
    expires_ms: int = attrs.field(kw_only=True)
    """Time of its end, in milliseconds since 1970."""
    principal: str = attrs.field(default="", kw_only=True)
    """The name of the user that it stands for; for messages only."""
    extensions: Mapping[str, str] = attrs.field(factory=dict, kw_only=True)
    """Names and values that the broker gets beside it (KIP-342), such as `logicalCluster`."""

    def __attrs_post_init__(self) -> None:
        if not _TOKEN.fullmatch(self.value):
            raise ConfigError("A token of OAUTHBEARER has letters, digits and -._~+/ and = at its end.")
        for name, value in self.extensions.items():
            if not _EXTENSION_NAME.fullmatch(name) or name == "auth":
                raise ConfigError(f"{name!r} cannot be the name of an extension of OAUTHBEARER: letters can.")
            if not _EXTENSION_VALUE.fullmatch(value):
                raise ConfigError(
                    f"The value of the extension {name} of OAUTHBEARER is not printable text in ASCII."
                )


@attrs.define(repr=False)
class OAuthBearerMechanism:
    """One exchange: the token is sent as it is, so the connection should be TLS."""

    _token: OAuthBearerToken
    complete: bool = attrs.field(default=False, init=False)
    _refused: str | None = attrs.field(default=None, init=False)

    def first(self) -> bytes:
        token = self._token
        extensions = [f"{name}={value}" for name, value in token.extensions.items()]
        fields = [f"auth=Bearer {token.value}", *extensions]
        return f"n,,{_SEPARATOR}{_SEPARATOR.join(fields)}{_SEPARATOR}{_SEPARATOR}".encode()

    def next(self, challenge: bytes) -> bytes | None:
        if self._refused is not None:
            raise SaslAuthenticationError(f"The broker refused the token: {self._refused}")
        if challenge:
            # The reason, in JSON. Only when this was confirmed does the broker end the exchange, with an error.
            self._refused = challenge[:1000].decode("utf-8", "replace")
            return _SEPARATOR.encode()
        self.complete = True
        return None
