"""Claims of a token that is a JWT (RFC 7519), read without a check of its signature: that is the broker's to do."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping
from typing import Any

from kclient.errors import ConfigError
from kclient.security.oauth_bearer import OAuthBearerToken

_MOST_CHARACTERS = 64 * 1024
_LATEST_S = 1 << 40  # seconds; what a clock can show is far below


def read_jwt(
    value: str, *, subject_claim: str = "sub", extensions: Mapping[str, str] | None = None
) -> OAuthBearerToken:
    """Return the token of a JWT. Raises ConfigError, which shows nothing of it, if it is none or has no `exp`."""
    claims = _claims(value)
    expires_s = claims.get("exp")
    if isinstance(expires_s, bool) or not isinstance(expires_s, int | float):
        raise ConfigError("The token has no claim exp, the time of its end; is it the right kind of token?")
    if not 0 < expires_s < _LATEST_S:
        raise ConfigError(f"The token's claim exp is {expires_s}, which is no time in seconds.")
    subject = claims.get(subject_claim, "")
    return OAuthBearerToken(
        value,
        expires_ms=int(expires_s * 1000),
        principal=subject if isinstance(subject, str) else "",
        extensions=dict(extensions or {}),
    )


def unsecured_jwt(subject: str, lifetime_s: int, claims: Mapping[str, object]) -> str:
    """Return a JWT without a signature, which brokers take that are set up for development."""
    now_s = int(time.time())
    header = {"alg": "none"}
    content = {"sub": subject, "iat": now_s, "exp": now_s + lifetime_s, **claims}
    return f"{_encoded(header)}.{_encoded(content)}."


def _encoded(value: Mapping[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def _claims(value: str) -> dict[str, Any]:
    parts = value.split(".") if len(value) <= _MOST_CHARACTERS else []
    if len(parts) != 3:
        raise ConfigError("The token is no JWT, which has three parts with dots between.")
    text = parts[1]
    try:
        claims = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (ValueError, RecursionError):
        raise ConfigError("The token is no JWT: its second part is not JSON in base64.") from None
    if not isinstance(claims, dict):
        raise ConfigError("The token is no JWT: its second part is not an object of JSON.")
    return claims
