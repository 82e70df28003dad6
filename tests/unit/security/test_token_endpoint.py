"""Requests for tokens, to an identity provider on this machine."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.mock_time import MockTime
from harness.network.certificates import Authority
from harness.network.identity_provider import Answer, IdentityProvider, identity_provider
from harness.network.ports import free_port
from kclient.errors import ConfigError, SaslAuthenticationError
from kclient.security.token_endpoint import TokenEndpoint, check_url

SETTING = "sasl.oauthbearer.token.endpoint.url"


@pytest.fixture
def provider() -> Iterator[IdentityProvider]:
    with identity_provider() as running:
        yield running


def endpoint(url: str, **changes: Any) -> TokenEndpoint:
    usual: dict[str, Any] = {
        "connect_timeout_ms": 5_000,
        "read_timeout_ms": None,
        "retry_backoff_ms": 100,
        "retry_backoff_max_ms": 10_000,
        "time": MockTime(),
    }
    return TokenEndpoint(url=url, **{**usual, **changes})


def refused(asked: TokenEndpoint) -> str:
    with pytest.raises(SaslAuthenticationError) as caught:
        asked.fetch({"client_secret": "hunter2"}, {"Authorization": "Basic hunter2"})
    assert "hunter2" not in str(caught.value)
    assert f"No token from {asked.url} ({SETTING}): " in str(caught.value)
    return str(caught.value)


def test_a_form_goes_there_and_a_token_comes_back(provider: IdentityProvider) -> None:
    provider.answers.append(Answer(b'{"access_token": "abc"}'))
    form = {"grant_type": "client_credentials", "scope": "a b&c"}
    assert endpoint(provider.token_url).fetch(form, {"Authorization": "Basic x"}) == "abc"
    (request,) = provider.requests
    assert (request.path, request.form) == ("/token", form)
    assert request.headers["authorization"] == "Basic x"
    assert request.headers["content-type"] == "application/x-www-form-urlencoded"
    assert request.headers["accept"] == "application/json"


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_a_refusal_is_final_and_told_with_the_reason(provider: IdentityProvider, status: int) -> None:
    body = {"error": "invalid_client", "error_description": "no such client", "other": "of no concern"}
    provider.answers.append(Answer(json.dumps(body).encode(), status))
    assert refused(endpoint(provider.token_url)).endswith(f"HTTP {status} invalid_client: no such client")
    assert len(provider.requests) == 1


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_may_pass_is_tried_again(provider: IdentityProvider, status: int) -> None:
    provider.answers += [Answer(b"busy", status), Answer(b"[]", status), Answer(b'{"access_token": "abc"}')]
    assert endpoint(provider.token_url).fetch({}) == "abc"
    assert len(provider.requests) == 3


def test_new_tries_end_with_the_time_for_them(provider: IdentityProvider) -> None:
    provider.answers += [Answer(b"", 503)] * 100
    time = MockTime()
    began_ms = time.monotonic_ms()
    assert "HTTP 503" in refused(endpoint(provider.token_url, time=time))
    assert 5_000 <= time.monotonic_ms() - began_ms <= 10_000
    assert 3 < len(provider.requests) < 20


def test_nobody_there_is_told_after_new_tries() -> None:
    time = MockTime()
    began_ms = time.monotonic_ms()
    assert "refused" in refused(endpoint(f"http://127.0.0.1:{free_port()}/", time=time))
    assert time.monotonic_ms() > began_ms


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_the_secret_goes_to_no_other_address(provider: IdentityProvider, status: int) -> None:
    with identity_provider() as other:
        provider.answers.append(Answer(b"", status, {"Location": other.token_url}))
        assert f"HTTP {status}" in refused(endpoint(provider.token_url))
        assert other.requests == []


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"<html>", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "without access_token"),
        (b'{"access_token": ""}', "without access_token"),
        (b'{"access_token": 7}', "without access_token"),
        (b'{"id_token": "abc"}', "without access_token"),
        (b" " * (1024 * 1024 + 1), "more than 1048576 bytes"),
    ],
)
def test_an_answer_without_a_token_is_told_and_not_shown(
    provider: IdentityProvider, body: bytes, why: str
) -> None:
    provider.answers.append(Answer(body))
    assert why in refused(endpoint(provider.token_url))
    assert len(provider.requests) == 1


def test_a_certificate_is_checked_and_a_wrong_one_is_final(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(authority.issue("127.0.0.1"))
    trusting = ssl.create_default_context(cafile=authority.file)
    with identity_provider(tls=server) as provider:
        url = provider.token_url.replace("http:", "https:")
        assert endpoint(url, tls=trusting).fetch({}).count(".") == 2
        time = MockTime()
        began_ms = time.monotonic_ms()
        assert "CERTIFICATE_VERIFY_FAILED" in refused(endpoint(url, time=time))
        assert time.monotonic_ms() == began_ms
        assert len(provider.requests) == 1


@pytest.mark.parametrize("url", ["ftp://x/y", "x/y", "", "//x", "data:,x"])
def test_an_address_has_one_of_three_schemes(url: str) -> None:
    with pytest.raises(ConfigError, match=f"^{SETTING} has to begin with https:, http: or file:") as caught:
        check_url(url, SETTING, [url])
    assert caught.value.name == SETTING


@pytest.mark.parametrize("url", ["http://169.254.169.254/", "file:///etc/passwd", "FILE:///etc/passwd"])
def test_an_address_that_is_not_https_has_to_be_allowed(url: str) -> None:
    with pytest.raises(ConfigError, match=r"kclient\.sasl\.oauthbearer\.allowed\.urls") as caught:
        check_url(url, SETTING, [f"{url}x"])
    assert caught.value.name == SETTING
    assert check_url(url, SETTING, ["other", url]) == url.partition(":")[0].lower()


def test_https_needs_no_permission() -> None:
    assert check_url("HTTPS://issuer.example/token", SETTING, []) == "https"
