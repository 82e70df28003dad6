"""An identity provider on this machine: a token endpoint that answers as a test says, and the keys it signs with."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
import urllib.parse
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import attrs
import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

KEY_ID = "key-1"


@attrs.frozen
class TokenRequest:
    """One request of a client: its path, its form and its headers, the names of these in lower case."""

    path: str
    form: dict[str, str]
    headers: dict[str, str]


@attrs.frozen
class Answer:
    """An answer of the token endpoint."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = attrs.field(factory=dict)


class IdentityProvider:
    """Grants tokens to everybody for `lifetime_s`. `answers` come first, one for each request."""

    def __init__(self, *, lifetime_s: int = 3600) -> None:
        self.lifetime_s = lifetime_s
        self.issuer = "https://issuer.test"
        self.audience = "kafka"
        self.requests: list[TokenRequest] = []
        self.answers: list[Answer] = []
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.port = 0

    @property
    def token_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/token"

    @property
    def jwks_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/jwks"

    def token(self, subject: str = "alice") -> str:
        """Return a signed JWT."""
        now_s = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": self.audience,
            "sub": subject,
            "scope": "kafka",
            "iat": now_s,
            "exp": now_s + self.lifetime_s,
            "jti": str(uuid.uuid4()),
        }
        return jwt.encode(claims, self._key, algorithm="RS256", headers={"kid": KEY_ID})

    def jwks(self) -> dict[str, Any]:
        """Return the public keys, as brokers fetch them."""
        numbers = self._key.public_key().public_numbers()
        key = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": KEY_ID}
        return {"keys": [{**key, "n": _base64(numbers.n), "e": _base64(numbers.e)}]}

    def answer(self, request: TokenRequest) -> Answer:
        """Return the next answer."""
        self.requests.append(request)
        if self.answers:
            return self.answers.pop(0)
        body = {"access_token": self.token(), "token_type": "Bearer", "expires_in": self.lifetime_s}
        return Answer(json.dumps(body).encode())


@contextmanager
def identity_provider(
    *, lifetime_s: int = 3600, tls: ssl.SSLContext | None = None
) -> Iterator[IdentityProvider]:
    """An identity provider that answers on a port of its own; with `tls` only over HTTPS."""
    provider = IdentityProvider(lifetime_s=lifetime_s)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(Answer(json.dumps(provider.jwks()).encode()))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = dict(urllib.parse.parse_qsl(body, strict_parsing=True))
            headers = {name.lower(): value for name, value in self.headers.items()}
            self._send(provider.answer(TokenRequest(self.path, form, headers)))

        def _send(self, answer: Answer) -> None:
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            pass  # a client that refuses the certificate goes in the handshake

    with Server(("127.0.0.1", 0), Handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        provider.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield provider
        finally:
            server.shutdown()
            thread.join(10)


def _base64(number: int) -> str:
    data = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
