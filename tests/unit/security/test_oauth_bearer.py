"""A token of OAUTHBEARER, and the exchange that sends it."""

from __future__ import annotations

import pytest

from kclient.errors import ConfigError, SaslAuthenticationError
from kclient.security.oauth_bearer import OAuthBearerMechanism, OAuthBearerToken

SECRET = "aaa.bbb-_~+/.c=="


def test_the_token_is_sent_with_its_extensions() -> None:
    token = OAuthBearerToken(SECRET, expires_ms=1, extensions={"logicalCluster": "lkc-1", "pool": "a b"})
    exchange = OAuthBearerMechanism(token)
    assert exchange.first() == (
        b"n,,\x01auth=Bearer aaa.bbb-_~+/.c==\x01logicalCluster=lkc-1\x01pool=a b\x01\x01"
    )
    assert not exchange.complete
    assert exchange.next(b"") is None
    assert exchange.complete


def test_a_refusal_is_confirmed_before_its_reason_is_raised() -> None:
    exchange = OAuthBearerMechanism(OAuthBearerToken(SECRET, expires_ms=1))
    exchange.first()
    assert exchange.next(b'{"status":"invalid_token"}') == b"\x01"
    assert not exchange.complete
    with pytest.raises(SaslAuthenticationError, match=r'refused the token: .*"invalid_token"') as caught:
        exchange.next(b"")
    assert SECRET not in str(caught.value)


def test_a_long_reason_is_cut() -> None:
    exchange = OAuthBearerMechanism(OAuthBearerToken(SECRET, expires_ms=1))
    exchange.next(b"x" * 100_000 + b"\xff")
    with pytest.raises(SaslAuthenticationError) as caught:
        exchange.next(b"")
    assert len(str(caught.value)) < 1100


@pytest.mark.parametrize("value", ["", "a b", "a\x01b", "a\n", "é", "=a"])
def test_a_token_that_could_break_out_of_its_field_is_refused_and_not_shown(value: str) -> None:
    with pytest.raises(ConfigError, match="letters, digits") as caught:
        OAuthBearerToken(value, expires_ms=1)
    assert not value or value not in str(caught.value)


@pytest.mark.parametrize("name", ["", "a1", "auth", "a=b"])
def test_an_extension_has_a_name_of_letters_that_is_not_auth(name: str) -> None:
    with pytest.raises(ConfigError, match="name of an extension"):
        OAuthBearerToken("a", expires_ms=1, extensions={name: "v"})


@pytest.mark.parametrize("value", ["", "a\x01b", "é"])
def test_an_extension_has_a_value_that_can_be_printed(value: str) -> None:
    with pytest.raises(ConfigError, match="extension pool"):
        OAuthBearerToken("a", expires_ms=1, extensions={"pool": value})


def test_bytes_are_no_token() -> None:
    with pytest.raises(TypeError):
        OAuthBearerToken(b"a", expires_ms=1)  # type: ignore[arg-type]


def test_no_repr_has_the_token() -> None:
    token = OAuthBearerToken(SECRET, expires_ms=1)
    assert SECRET not in repr(token)
    assert SECRET not in repr(OAuthBearerMechanism(token))
