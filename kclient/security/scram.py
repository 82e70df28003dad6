"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677), as Kafka has them (KIP-84)."""

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

from kclient.errors import SaslAuthenticationError

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""The digest of each mechanism."""
FEWEST_ITERATIONS = 4096
"""Kafka's limit for credentials."""
_NO_CHANNEL_BINDING = "n,,"
# Kafka's own limit is 16,384. The work is done on the I/O thread, so nobody may ask for any amount of it.
_MOST_ITERATIONS = 65_536
_SERVER_FIRST = re.compile(
    r"r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+),s=(?P<salt>[A-Za-z0-9+/=]+),i=(?P<iterations>[0-9]{1,9})(,.*)?"
)


def new_nonce() -> str:
    """Return what makes one exchange differ from all others."""
    return secrets.token_urlsafe(24)


@attrs.define(repr=False)
class ScramMechanism:
    """One exchange. The password is never sent, and the server has to prove that it knows it, too.

    With `delegation_token` user and password are a token's id and HMAC (KIP-48).
    """

    _mechanism: str
    _username: str
    _password: str
    _delegation_token: bool = attrs.field(default=False, kw_only=True)
    _make_nonce: Callable[[], str] = attrs.field(default=new_nonce, kw_only=True)
    complete: bool = attrs.field(default=False, init=False)
    _first_bare: str = attrs.field(default="", init=False)
    _nonce: str = attrs.field(default="", init=False)
    _server_signature: bytes | None = attrs.field(default=None, init=False)

    def first(self) -> bytes:
        self._nonce = self._make_nonce()
        name = self._username.replace("=", "=3D").replace(",", "=2C")
        extension = ",tokenauth=true" if self._delegation_token else ""
        self._first_bare = f"n={name},r={self._nonce}{extension}"
        return f"{_NO_CHANNEL_BINDING}{self._first_bare}".encode()

    def next(self, challenge: bytes) -> bytes | None:
        try:
            text = challenge.decode("utf-8")
        except UnicodeDecodeError:
            raise self._refused("it is not UTF-8") from None
        if self._server_signature is None:
            return self._prove(text)
        self._verify(text)
        self.complete = True
        return None

    def _prove(self, server_first: str) -> bytes:
        match = _SERVER_FIRST.fullmatch(server_first)
        if match is None:
            raise self._refused("nonce, salt and number of iterations are not in it")
        if not match["nonce"].startswith(self._nonce) or match["nonce"] == self._nonce:
            raise self._refused("its nonce does not begin with ours, and go on")
        iterations = int(match["iterations"])
        if not FEWEST_ITERATIONS <= iterations <= _MOST_ITERATIONS:
            raise self._refused(
                f"it asks for {iterations} iterations; {FEWEST_ITERATIONS} to {_MOST_ITERATIONS} are allowed"
            )
        try:
            salt = base64.b64decode(match["salt"], validate=True)
        except binascii.Error:
            raise self._refused("its salt is not in base64") from None
        digest = HASHES[self._mechanism]
        salted = hashlib.pbkdf2_hmac(digest, self._password.encode(), salt, iterations)
        binding = base64.b64encode(_NO_CHANNEL_BINDING.encode()).decode()
        without_proof = f"c={binding},r={match['nonce']}"
        signed = f"{self._first_bare},{server_first},{without_proof}".encode()
        client_key = hmac.digest(salted, b"Client Key", digest)
        stored_key = hashlib.new(digest, client_key).digest()
        proof = bytes(map(xor, client_key, hmac.digest(stored_key, signed, digest)))
        self._server_signature = hmac.digest(hmac.digest(salted, b"Server Key", digest), signed, digest)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def _verify(self, server_final: str) -> None:
        assert self._server_signature is not None
        kind, _, value = server_final.partition("=")
        if kind == "e":
            raise SaslAuthenticationError(f"{self._mechanism} was refused: {value}")
        try:
            signature = base64.b64decode(value.partition(",")[0], validate=True)
        except binascii.Error:
            signature = b""
        if kind != "v" or not hmac.compare_digest(signature, self._server_signature):
            raise SaslAuthenticationError(
                f"{self._mechanism}: the broker could not prove that it knows the password; is it the right cluster?"
            )

    def _refused(self, why: str) -> SaslAuthenticationError:
        return SaslAuthenticationError(f"{self._mechanism}: the broker's challenge cannot be used: {why}")
