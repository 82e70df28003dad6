"""Claims of a JWT."""

from __future__ import annotations

import base64
import json
import time

import pytest

from kclient.errors import ConfigError
from kclient.security.jwt_claims import read_jwt, unsecured_jwt


def encoded(text: bytes) -> str:
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def jwt(**claims: object) -> str:
    return f"e30.{encoded(json.dumps(claims).encode())}.c2ln"


def test_end_and_subject_are_read() -> None:
    value = jwt(exp=1_800_000_000, sub="alice", preferred="bob")
    token = read_jwt(value, extensions={"pool": "p"})
    assert (token.value, token.expires_ms, token.principal) == (value, 1_800_000_000_000, "alice")
    assert token.extensions == {"pool": "p"}
    assert read_jwt(value, subject_claim="preferred").principal == "bob"


def test_an_end_may_have_a_fraction_and_a_subject_may_be_missing() -> None:
    token = read_jwt(jwt(exp=1.5, sub=7))
    assert (token.expires_ms, token.principal) == (1500, "")


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("opaque", "three parts"),
        ("a.b.c.d", "three parts"),
        ("a." + "b" * 70_000 + ".c", "three parts"),
        (f"a.{encoded(b'not json')}.c", "not JSON"),
        (f"a.{encoded(b'[' * 40_000)}.c", "not JSON"),
        ("a.b.c", "not JSON"),
        (f"a.{encoded(b'[1]')}.c", "not an object"),
        (jwt(sub="alice"), "no claim exp"),
        (jwt(exp="soon"), "no claim exp"),
        (jwt(exp=True), "no claim exp"),
        (jwt(exp=0), "no time"),
        (jwt(exp=1e300), "no time"),
        (jwt(exp=float("nan")), "no time"),
    ],
)
def test_a_text_that_is_no_jwt_is_refused_and_not_shown(value: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        read_jwt(value)
    assert value not in str(caught.value)


def test_an_unsecured_jwt_says_who_and_until_when() -> None:
    value = unsecured_jwt("alice", 60, {"scope": "s"})
    header, claims, signature = value.split(".")
    assert json.loads(base64.urlsafe_b64decode(header + "==")) == {"alg": "none"}
    assert json.loads(base64.urlsafe_b64decode(claims + "=="))["scope"] == "s"
    assert signature == ""
    token = read_jwt(value)
    assert token.principal == "alice"
    assert 0 < token.expires_ms - time.time() * 1000 <= 60_000
