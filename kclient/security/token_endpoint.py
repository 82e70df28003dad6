"""TokenEndpoint: requests to an identity provider's token endpoint (OAuth 2.0, RFC 6749)."""

from __future__ import annotations

import http.client
import json
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any

import attrs

from kclient.errors import ConfigError, SaslAuthenticationError
from kclient.utils.backoff import ExponentialBackoff
from kclient.utils.time import SYSTEM_TIME, Time

_MOST_BYTES = 1024 * 1024
_DEFAULT_TIMEOUT_MS = 10_000
# The answer will be the same to the same request.
_FINAL = frozenset({400, 401, 402, 403, 404, 405, 406, 407, 409, 410, 411, 412, 413, 414, 415, 501, 505})


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows none: the client's secret is for the address of the configuration alone."""

    def redirect_request(self, *_: Any) -> None:
        return None


@attrs.frozen(kw_only=True)
class TokenEndpoint:
    """The address of tokens, and how patiently it is asked. Immutable."""

    url: str
    connect_timeout_ms: int | None
    read_timeout_ms: int | None
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    tls: ssl.SSLContext | None = None
    time: Time = SYSTEM_TIME

    def fetch(self, form: Mapping[str, str], headers: Mapping[str, str] | None = None) -> str:
        """Return the access token of the answer to `form`. Blocks.

        What may pass is tried again for `retry_backoff_max_ms`, as in Java. Raises SaslAuthenticationError that names
        the address and says what was answered.
        """
        backoff = ExponentialBackoff(self.retry_backoff_ms, self.retry_backoff_max_ms)
        deadline = self.time.timer(self.retry_backoff_max_ms)
        attempts = 0
        while True:
            try:
                return self._once(form, headers or {})
            except urllib.error.HTTPError as error:
                with error:
                    failure = self._error(f"HTTP {error.code} {_reason(error)}")
                if error.code in _FINAL or 300 <= error.code < 400:
                    raise failure from None
            except (OSError, http.client.HTTPException) as error:
                reason = error.reason if isinstance(error, urllib.error.URLError) else error
                failure = self._error(str(reason) or type(reason).__name__)
                if isinstance(reason, ssl.SSLCertVerificationError):
                    raise failure from None
            wait_ms = backoff.backoff_ms(attempts)
            attempts += 1
            if wait_ms >= deadline.remaining_ms():
                raise failure
            self.time.sleep_ms(wait_ms)

    def _once(self, form: Mapping[str, str], headers: Mapping[str, str]) -> str:
        request = urllib.request.Request(
            self.url,
            urllib.parse.urlencode(form).encode(),
            {**headers, "Accept": "application/json", "Cache-Control": "no-cache"},
            method="POST",
        )
        handlers: list[urllib.request.BaseHandler] = [_NoRedirects()]
        if self.tls is not None:
            handlers.append(urllib.request.HTTPSHandler(context=self.tls))
        timeouts = [ms for ms in (self.connect_timeout_ms, self.read_timeout_ms) if ms is not None]
        timeout_s = max(timeouts, default=_DEFAULT_TIMEOUT_MS) / 1000
        with urllib.request.build_opener(*handlers).open(request, timeout=timeout_s) as response:
            data = response.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise self._error(f"an answer of more than {_MOST_BYTES} bytes")
        try:
            answer = json.loads(data)
        except (ValueError, RecursionError):
            raise self._error("an answer that is not JSON") from None
        token = answer.get("access_token") if isinstance(answer, dict) else None
        if not isinstance(token, str) or not token:
            raise self._error("an answer without access_token")
        return token

    def _error(self, text: str) -> SaslAuthenticationError:
        return SaslAuthenticationError(
            f"No token from {self.url} (sasl.oauthbearer.token.endpoint.url): {text}"
        )


def check_url(url: str, setting: str, allowed: list[str]) -> str:
    """Return the scheme of an address. Raises ConfigError for others than https that are not in `allowed`.

    A configuration that somebody else has a hand in must not be able to read files and talk to any port
    (CVE-2025-27817).
    """
    scheme = urllib.parse.urlsplit(url).scheme.lower()
    if scheme not in ("https", "http", "file"):
        raise ConfigError(
            f"{setting} has to begin with https:, http: or file:, not as {url!r} does.", name=setting
        )
    if scheme != "https" and url not in allowed:
        raise ConfigError(
            f"{setting} is {url}. An address that is not https is used only if it is in "
            "kclient.sasl.oauthbearer.allowed.urls; add it there.",
            name=setting,
        )
    return scheme


def _reason(error: urllib.error.HTTPError) -> str:
    """Return the two fields by which the standard says why; nothing else of the answer, which may hold anything."""
    try:
        answer = json.loads(error.read(_MOST_BYTES))
    except (OSError, ValueError, RecursionError, http.client.HTTPException):
        return str(error.reason)
    if not isinstance(answer, dict):
        return str(error.reason)
    found = [str(answer[name])[:500] for name in ("error", "error_description") if name in answer]
    return ": ".join(found) or str(error.reason)
