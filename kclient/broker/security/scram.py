"""SCRAM-SHA-256 and SCRAM-SHA-512 of a broker (RFC 5802, RFC 7677, KIP-84)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable
from operator import xor

import attrs

from kclient.broker.security.mechanisms import refused
from kclient.broker.security.principal import USER, KafkaPrincipal
from kclient.errors import SaslAuthenticationError
from kclient.security.scram import FEWEST_ITERATIONS, HASHES, new_nonce

MECHANISM_NUMBERS = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
"""The number of each mechanism in the protocol (KIP-554)."""
MOST_ITERATIONS = 16_384
"""Kafka's upper limit for credentials."""

_NAME = r"(?:[^=,\x00]|=2C|=3D)+"
_NONCE = r"[\x21-\x2b\x2d-\x7e]+"
_BASE64 = r"[A-Za-z0-9+/=]+"
_FIRST = re.compile(
    rf"(?P<gs2>[ny],(?:a=(?P<authorization>{_NAME}))?,)"
    rf"(?P<bare>n=(?P<user>{_NAME}),r=(?P<nonce>{_NONCE})(?:,.*)?)"
)
_FINAL = re.compile(
    rf"(?P<unproven>c=(?P<binding>{_BASE64}),r=(?P<nonce>{_NONCE})(?:,[^p].*)?),p=(?P<proof>{_BASE64})"
)


@attrs.frozen
class ScramCredential:
    """A broker's knowledge of a password: enough to recognise it, not enough to use it. Immutable."""

    salt: bytes = attrs.field(repr=False)
    stored_key: bytes = attrs.field(repr=False)
    server_key: bytes = attrs.field(repr=False)
    iterations: int

    @classmethod
    def of_password(
        cls, mechanism: str, password: str, *, iterations: int = FEWEST_ITERATIONS, salt: bytes | None = None
    ) -> ScramCredential:
        """Return the credential of `password`, with a random salt unless one is given."""
        digest = HASHES[mechanism]
        salt = secrets.token_bytes(20) if salt is None else salt
        salted = hashlib.pbkdf2_hmac(digest, password.encode(), salt, iterations)
        return cls.of_salted_password(mechanism, salted, salt=salt, iterations=iterations)

    @classmethod
    def of_salted_password(
        cls, mechanism: str, salted: bytes, *, salt: bytes, iterations: int
    ) -> ScramCredential:
        """Return the credential of a password that the client has salted, as administrators send it (KIP-554)."""
        digest = HASHES[mechanism]
        client_key = hmac.digest(salted, b"Client Key", digest)
        server_key = hmac.digest(salted, b"Server Key", digest)
        return cls(salt, hashlib.new(digest, client_key).digest(), server_key, iterations)


@attrs.define(repr=False)
class ScramServer:
    """One exchange. `credential_of` a user is None if there is no such user."""

    _mechanism: str
    _credential_of: Callable[[str], ScramCredential | None]
    _make_nonce: Callable[[], str] = attrs.field(default=new_nonce, kw_only=True)
    principal: KafkaPrincipal | None = attrs.field(default=None, init=False)
    expires_ms: int | None = attrs.field(default=None, init=False)
    _user: str = attrs.field(default="", init=False)
    _gs2: str = attrs.field(default="", init=False)
    _first_messages: str = attrs.field(default="", init=False)
    _nonce: str = attrs.field(default="", init=False)
    _credential: ScramCredential | None = attrs.field(default=None, init=False)

    def respond(self, token: bytes) -> bytes:
        try:
            text = token.decode("utf-8")
        except UnicodeDecodeError:
            raise self._malformed() from None
        return (self._begin(text) if self._credential is None else self._prove(text)).encode()

    def _begin(self, client_first: str) -> str:
        found = _FIRST.fullmatch(client_first)
        if found is None:
            raise self._malformed()
        user = _unescaped(found["user"])
        if found["authorization"] is not None and _unescaped(found["authorization"]) != user:
            raise SaslAuthenticationError(
                "Authentication failed: the client asks for another authorization id than its user"
            )
        credential = self._credential_of(user)
        if credential is None:
            raise refused(self._mechanism)
        self._user, self._gs2, self._credential = user, found["gs2"], credential
        self._nonce = found["nonce"] + self._make_nonce()
        salt = base64.b64encode(credential.salt).decode()
        server_first = f"r={self._nonce},s={salt},i={credential.iterations}"
        self._first_messages = f"{found['bare']},{server_first}"
        return server_first

    def _prove(self, client_final: str) -> str:
        assert self._credential is not None
        found = _FINAL.fullmatch(client_final)
        if found is None:
            raise self._malformed()
        digest = HASHES[self._mechanism]
        signed = f"{self._first_messages},{found['unproven']}".encode()
        signature = hmac.digest(self._credential.stored_key, signed, digest)
        try:
            proof = base64.b64decode(found["proof"], validate=True)
            binding = base64.b64decode(found["binding"], validate=True)
        except binascii.Error:
            raise self._malformed() from None
        if len(proof) != len(signature):
            raise refused(self._mechanism)
        client_key = bytes(map(xor, proof, signature))
        stored_key = hashlib.new(digest, client_key).digest()
        if (
            binding != self._gs2.encode()
            or not hmac.compare_digest(found["nonce"], self._nonce)
            or not hmac.compare_digest(stored_key, self._credential.stored_key)
        ):
            raise refused(self._mechanism)
        self.principal = KafkaPrincipal(USER, self._user)
        verifier = hmac.digest(self._credential.server_key, signed, digest)
        return f"v={base64.b64encode(verifier).decode()}"

    def _malformed(self) -> SaslAuthenticationError:
        return SaslAuthenticationError(
            f"Authentication failed: a token of {self._mechanism} cannot be understood"
        )


def _unescaped(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")
