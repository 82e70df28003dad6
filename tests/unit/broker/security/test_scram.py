"""SCRAM of a broker: the exchange of RFC 7677, with own clients, and with those who do not know the password."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.broker.security.principal import KafkaPrincipal
from kclient.broker.security.scram import ScramCredential, ScramServer
from kclient.errors import SaslAuthenticationError
from kclient.security.scram import HASHES, ScramMechanism


def exchange(mechanism: str, user: str, password: str, credential: ScramCredential | None) -> ScramServer:
    client = ScramMechanism(mechanism, user, password)
    server = ScramServer(mechanism, lambda name: credential if name == user else None)
    challenge = server.respond(client.first())
    final = client.next(challenge)
    assert final is not None
    client.next(server.respond(final))
    assert client.complete
    return server


def test_the_exchange_of_rfc_7677() -> None:
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    credential = ScramCredential.of_password("SCRAM-SHA-256", "pencil", salt=salt)
    server = ScramServer(
        "SCRAM-SHA-256", lambda _: credential, make_nonce=lambda: "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    )
    assert server.respond(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO") == (
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    final = (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert server.respond(final) == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert server.principal == KafkaPrincipal("User", "user")


@pytest.mark.parametrize("mechanism", HASHES)
@pytest.mark.parametrize("user", ["alice", "a,b=c", "Zoë"])
def test_a_client_that_knows_the_password_is_its_user(mechanism: str, user: str) -> None:
    credential = ScramCredential.of_password(mechanism, "secret", iterations=8192)
    server = exchange(mechanism, user, "secret", credential)
    assert server.principal == KafkaPrincipal("User", user)


@pytest.mark.parametrize("credential", [None, ScramCredential.of_password("SCRAM-SHA-256", "other")])
def test_a_wrong_password_and_an_unknown_user_are_refused_alike(credential: ScramCredential | None) -> None:
    with pytest.raises(
        SaslAuthenticationError, match="invalid credentials with SASL mechanism SCRAM-SHA-256"
    ):
        exchange("SCRAM-SHA-256", "alice", "secret", credential)


def test_the_proof_of_another_exchange_is_worth_nothing() -> None:
    credential = ScramCredential.of_password("SCRAM-SHA-256", "secret")
    client = ScramMechanism("SCRAM-SHA-256", "alice", "secret")
    first = client.first()
    final = client.next(ScramServer("SCRAM-SHA-256", lambda _: credential).respond(first))
    assert final is not None
    again = ScramServer("SCRAM-SHA-256", lambda _: credential)
    again.respond(first)
    with pytest.raises(SaslAuthenticationError):
        again.respond(final)
    assert again.principal is None


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"n,,",
        b"p=tls-unique,,n=a,r=b",
        b"n,a=bob,n=alice,r=x",
        b"n,,n=al=ice,r=x",
        b"\xff",
        b"n,,m=x,n=a,r=b",
    ],
)
def test_first_messages_that_cannot_be_taken_are_refused(first: bytes) -> None:
    credential = ScramCredential.of_password("SCRAM-SHA-256", "secret")
    server = ScramServer("SCRAM-SHA-256", lambda _: credential)
    with pytest.raises(SaslAuthenticationError):
        server.respond(first)


@given(st.binary(max_size=200))
def test_no_last_message_but_the_right_one_is_a_proof(final: bytes) -> None:
    credential = ScramCredential(b"salt", b"\0" * 32, b"\0" * 32, 4096)
    server = ScramServer("SCRAM-SHA-256", lambda _: credential)
    server.respond(b"n,,n=alice,r=nonce")
    with pytest.raises(SaslAuthenticationError):
        server.respond(final)


def test_a_credential_shows_nothing_of_itself() -> None:
    assert "salt" not in repr(ScramCredential.of_password("SCRAM-SHA-512", "secret", salt=b"salt"))
