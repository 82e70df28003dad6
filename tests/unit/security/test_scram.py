"""SCRAM, held against the example of RFC 7677, and against servers that cheat."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from kclient.errors import SaslAuthenticationError
from kclient.security.scram import ScramMechanism

NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"


def scram(mechanism: str = "SCRAM-SHA-256", **settings: object) -> ScramMechanism:
    return ScramMechanism(mechanism, "user", "pencil", make_nonce=lambda: NONCE, **settings)  # type: ignore[arg-type]


def test_the_example_of_rfc_7677() -> None:
    exchange = scram()
    assert exchange.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert exchange.next(SERVER_FIRST) == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert not exchange.complete
    assert exchange.next(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=") is None
    assert exchange.complete


def test_sha_512_proves_the_password_to_a_server_that_stores_its_keys() -> None:
    exchange = scram("SCRAM-SHA-512")
    first = exchange.first()
    salt, nonce = b"salt", f"{NONCE}more"
    server_first = f"r={nonce},s={base64.b64encode(salt).decode()},i=8192".encode()
    final = exchange.next(server_first)
    assert final is not None
    without, _, proof = final.rpartition(b",p=")
    salted = hashlib.pbkdf2_hmac("sha512", b"pencil", salt, 8192)
    signed = b",".join([first[3:], server_first, without])
    stored = hashlib.sha512(hmac.digest(salted, b"Client Key", "sha512")).digest()
    signature = hmac.digest(stored, signed, "sha512")
    key = bytes(a ^ b for a, b in zip(base64.b64decode(proof), signature, strict=True))
    assert hashlib.sha512(key).digest() == stored
    answer = hmac.digest(hmac.digest(salted, b"Server Key", "sha512"), signed, "sha512")
    assert exchange.next(b"v=" + base64.b64encode(answer)) is None
    assert exchange.complete


def test_names_are_escaped_and_a_delegation_token_says_that_it_is_one() -> None:
    exchange = ScramMechanism("SCRAM-SHA-256", "a=b,c", "x", delegation_token=True, make_nonce=lambda: "n")
    assert exchange.first() == b"n,,n=a=3Db=2Cc,r=n,tokenauth=true"


def test_each_exchange_has_a_nonce_of_its_own() -> None:
    assert len({ScramMechanism("SCRAM-SHA-256", "u", "p").first() for _ in range(100)}) == 100


@pytest.mark.parametrize(
    ("server_first", "why"),
    [
        (b"r=other,s=W22Z,i=4096", "does not begin with ours"),
        (f"r={NONCE},s=W22Z,i=4096".encode(), "and go on"),
        (f"r={NONCE}x,s=W22Z,i=4095".encode(), "4095 iterations"),
        (f"r={NONCE}x,s=W22Z,i=65537".encode(), "65537 iterations"),
        (f"r={NONCE}x,s=W22Z,i=999999999999".encode(), "are not in it"),
        (f"r={NONCE}x,s=W22,i=4096".encode(), "not in base64"),
        (b"m=must,r=x,s=W22Z,i=4096", "are not in it"),
        (b"e=other-error", "are not in it"),
        (b"\xff", "not UTF-8"),
    ],
)
def test_a_challenge_that_is_not_right_is_refused_before_the_password_is_used(
    server_first: bytes, why: str
) -> None:
    exchange = scram()
    exchange.first()
    with pytest.raises(SaslAuthenticationError, match=why):
        exchange.next(server_first)


@pytest.mark.parametrize(
    "final", [b"v=AAAA", b"v=", b"v=!", b"", b"x=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="]
)
def test_a_server_that_cannot_prove_that_it_knows_the_password_is_refused(final: bytes) -> None:
    exchange = scram()
    exchange.first()
    exchange.next(SERVER_FIRST)
    with pytest.raises(SaslAuthenticationError, match="could not prove"):
        exchange.next(final)
    assert not exchange.complete


def test_the_reason_of_a_refusal_is_told() -> None:
    exchange = scram()
    exchange.first()
    exchange.next(SERVER_FIRST)
    with pytest.raises(SaslAuthenticationError, match="invalid-proof"):
        exchange.next(b"e=invalid-proof")
