"""OAUTHBEARER of a broker without an identity provider: tokens that are not signed, for development (KIP-255)."""

from __future__ import annotations

import base64
import json
import re

import attrs

from kclient.broker.security.principal import USER, KafkaPrincipal
from kclient.errors import ConfigError, SaslAuthenticationError
from kclient.security.jwt_claims import read_jwt
from kclient.utils.time import Time

_FIRST = re.compile(
    r"[ny],(?:a=(?P<authorization>[^,\x01]+))?,\x01(?:[A-Za-z]+=[^\x01]*\x01)*?auth=Bearer (?P<token>[^\x01]+)\x01"
    r"(?:[A-Za-z]+=[^\x01]*\x01)*\x01",
    re.IGNORECASE,
)
_ABORTED = b"\x01"


@attrs.define(repr=False)
class UnsecuredOAuthBearerServer:
    """One exchange. Whoever names a user is taken for it, so this is for tests and development alone.

    A token that is signed is refused: nobody here could check the signature.
    """

    _time: Time
    principal: KafkaPrincipal | None = attrs.field(default=None, init=False)
    expires_ms: int | None = attrs.field(default=None, init=False)
    _refused: str | None = attrs.field(default=None, init=False)

    def respond(self, token: bytes) -> bytes:
        if self._refused is not None:
            raise SaslAuthenticationError(f"Authentication failed: {self._refused}")
        try:
            found = _FIRST.fullmatch(token.decode("utf-8"))
        except UnicodeDecodeError:
            found = None
        if found is None:
            raise SaslAuthenticationError(
                "Authentication failed: a token of OAUTHBEARER cannot be understood"
            )
        why = self._check(found["token"], found["authorization"])
        if why is None:
            return b""
        # The client confirms that it has the reason, and only then the exchange fails (RFC 7628, 3.2.3).
        self._refused = why
        return json.dumps({"status": "invalid_token"}).encode()

    def _check(self, value: str, authorization_id: str | None) -> str | None:
        """Return what is wrong with a token, None if it is right."""
        try:
            token = read_jwt(value)
            header = json.loads(base64.urlsafe_b64decode(value.split(".", maxsplit=1)[0] + "==="))
        except (ConfigError, ValueError) as error:
            return str(error)
        if not isinstance(header, dict) or header.get("alg") != "none" or not value.endswith("."):
            return "the token is signed, and this listener takes unsecured ones only"
        if not token.principal:
            return "the token names no user in its claim sub"
        if authorization_id not in {None, token.principal}:
            return "the client asks for another authorization id than its user"
        if token.expires_ms <= self._time.wall_ms():
            return "the token has expired"
        self.principal = KafkaPrincipal(USER, token.principal)
        self.expires_ms = token.expires_ms
        return None
