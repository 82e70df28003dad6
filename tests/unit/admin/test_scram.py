"""SCRAM credentials: as values that keep their secret, and as a broker sees them."""

from __future__ import annotations

import base64
import copy
import hashlib
import hmac
import logging
import pickle
from typing import Any

import pytest

from harness.network.scripted_broker import ScriptedBroker
from kclient.admin import (
    KafkaAdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialsDescription,
    UserScramCredentialUpsertion,
)
from kclient.errors import (
    AdminError,
    Errors,
    ResourceNotFoundError,
    UnacceptableCredentialError,
    UnknownServerError,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages import alter_user_scram_credentials as alter
from kclient.protocol.messages import describe_user_scram_credentials as describe

SHA_256 = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256)
SHA_512 = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 8192)


def altered(**codes: int) -> alter.AlterUserScramCredentialsResponse:
    return alter.AlterUserScramCredentialsResponse(
        results=[
            alter.AlterUserScramCredentialsResult(user=user, error_code=code, error_message="because")
            for user, code in codes.items()
        ]
    )


def test_a_password_is_salted_as_the_standard_says(
    scripted: ScriptedBroker, client: KafkaAdminClient
) -> None:
    """The exchange of RFC 7677: user `user` with password `pencil`."""
    scripted.answer(ApiKeys.ALTER_USER_SCRAM_CREDENTIALS, altered(user=0))
    salt = "W22ZaJ0SNY7soEsUEjb6gQ=="
    upsertion = UserScramCredentialUpsertion("user", SHA_256, "pencil", base64.b64decode(salt))
    assert client.alter_user_scram_credentials([upsertion]) == {"user": None}
    ((sent,),) = [each.upsertions for each in scripted.received(ApiKeys.ALTER_USER_SCRAM_CREDENTIALS)]
    assert (sent.name, sent.mechanism, sent.iterations, sent.salt) == ("user", 1, 4096, upsertion.salt)
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    exchange = f"n=user,r=rOprNGfwEbeRWgbNEkqO,r={nonce},s={salt},i=4096,c=biws,r={nonce}".encode()
    server_key = hmac.digest(sent.salted_password, b"Server Key", "sha256")
    signature = base64.b64encode(hmac.digest(server_key, exchange, "sha256"))
    assert signature == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_each_password_gets_a_salt_of_its_own_and_the_iterations_it_asks_for(
    scripted: ScriptedBroker, client: KafkaAdminClient
) -> None:
    scripted.answer(ApiKeys.ALTER_USER_SCRAM_CREDENTIALS, altered(a=0, b=0))
    client.alter_user_scram_credentials(
        [
            UserScramCredentialUpsertion("a", SHA_512, "pässwörd"),
            UserScramCredentialUpsertion("b", SHA_512, "x"),
        ]
    )
    first, second = scripted.received(ApiKeys.ALTER_USER_SCRAM_CREDENTIALS)[0].upsertions
    assert first.salt != second.salt
    assert min(len(first.salt), len(second.salt)) >= 16
    assert first.salted_password == hashlib.pbkdf2_hmac("sha512", "pässwörd".encode(), first.salt, 8192)


def test_a_controller_that_moved_is_asked_again(scripted: ScriptedBroker, client: KafkaAdminClient) -> None:
    scripted.answer(
        ApiKeys.ALTER_USER_SCRAM_CREDENTIALS, altered(alice=Errors.NOT_CONTROLLER), altered(alice=0)
    )
    deletion = UserScramCredentialDeletion("alice", ScramMechanism.SCRAM_SHA_512)
    assert client.alter_user_scram_credentials([deletion]) == {"alice": None}
    first, second = scripted.received(ApiKeys.ALTER_USER_SCRAM_CREDENTIALS)
    assert first == second
    assert first.deletions == [alter.ScramCredentialDeletion(name="alice", mechanism=2)]


def test_users_fail_by_themselves_also_those_that_the_answer_leaves_out(
    scripted: ScriptedBroker, client: KafkaAdminClient
) -> None:
    scripted.answer(ApiKeys.ALTER_USER_SCRAM_CREDENTIALS, altered(a=0, b=Errors.UNACCEPTABLE_CREDENTIAL))
    with pytest.raises(AdminError) as raised:
        client.alter_user_scram_credentials(
            [UserScramCredentialDeletion(user, ScramMechanism.SCRAM_SHA_256) for user in "abc"]
        )
    assert raised.value.results == {"a": None}
    assert {user: type(error) for user, error in raised.value.errors.items()} == {
        "b": UnacceptableCredentialError,
        "c": UnknownServerError,
    }


def described(user: str, code: int = 0, **mechanisms: int) -> describe.DescribeUserScramCredentialsResult:
    infos = [
        describe.CredentialInfo(mechanism=int(name[1:]), iterations=iterations)
        for name, iterations in mechanisms.items()
    ]
    return describe.DescribeUserScramCredentialsResult(
        user=user, error_code=code, error_message=None, credential_infos=infos
    )


def test_users_are_described_with_mechanisms_that_may_be_newer_than_we_are(
    scripted: ScriptedBroker, client: KafkaAdminClient
) -> None:
    results = [described("alice", m9=5000, m1=4096), described("bob", m2=8192)]
    answer = describe.DescribeUserScramCredentialsResponse(error_message=None, results=results)
    scripted.answer(ApiKeys.DESCRIBE_USER_SCRAM_CREDENTIALS, answer, answer)
    found = client.describe_user_scram_credentials()
    assert found["bob"] == UserScramCredentialsDescription("bob", (SHA_512,))
    assert found["alice"].credential_infos == (SHA_256, ScramCredentialInfo(ScramMechanism(9), 5000))
    assert client.describe_user_scram_credentials(["bob", "bob"]) == {"bob": found["bob"]}
    every, one = scripted.received(ApiKeys.DESCRIBE_USER_SCRAM_CREDENTIALS)
    assert every.users is None
    assert [user.name for user in one.users] == ["bob"]


def test_a_user_without_credentials_is_an_error_of_that_user(
    scripted: ScriptedBroker, client: KafkaAdminClient
) -> None:
    results = [described("alice", m1=4096), described("eve", Errors.RESOURCE_NOT_FOUND)]
    answer = describe.DescribeUserScramCredentialsResponse(error_message=None, results=results)
    scripted.answer(ApiKeys.DESCRIBE_USER_SCRAM_CREDENTIALS, answer)
    with pytest.raises(AdminError) as raised:
        client.describe_user_scram_credentials(["alice", "eve", "mallory"])
    assert list(raised.value.results) == ["alice"]
    assert isinstance(raised.value.errors["eve"], ResourceNotFoundError)
    assert isinstance(raised.value.errors["mallory"], UnknownServerError)


def test_names_of_mechanisms_are_those_of_settings() -> None:
    assert ScramMechanism.SCRAM_SHA_256.mechanism_name == "SCRAM-SHA-256"


class TestASecret:
    def test_is_in_no_repr_no_log_and_no_error(
        self, scripted: ScriptedBroker, client: KafkaAdminClient, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        scripted.answer(ApiKeys.ALTER_USER_SCRAM_CREDENTIALS, altered(alice=Errors.UNACCEPTABLE_CREDENTIAL))
        upsertion = UserScramCredentialUpsertion("alice", SHA_256, "s3cret", b"very-salty")
        with pytest.raises(UnacceptableCredentialError) as raised:
            client.alter_user_scram_credentials([upsertion])
        for text in (repr(upsertion), str(upsertion), str(raised.value), caplog.text):
            assert "s3cret" not in text
            assert "very-salty" not in text
        assert "alice" in repr(upsertion)

    @pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
    def test_is_not_pickled(self, protocol: int) -> None:
        upsertion = UserScramCredentialUpsertion("alice", SHA_256, "s3cret")
        with pytest.raises(TypeError, match="has a password and is not pickled"):
            pickle.dumps(upsertion, protocol)
        with pytest.raises(TypeError):
            copy.deepcopy(upsertion)

    @pytest.mark.parametrize("password", [b"s3cret", ["s3cret"], None])
    def test_of_another_type_is_refused_without_being_shown(self, password: Any) -> None:
        with pytest.raises(TypeError, match="password must be a str, not a ") as raised:
            UserScramCredentialUpsertion("alice", SHA_256, password)
        assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: UserScramCredentialUpsertion("", SHA_256, "p"), "user must not be empty"),
        (lambda: UserScramCredentialUpsertion("u", SHA_256, ""), "password must not be empty"),
        (lambda: UserScramCredentialUpsertion("u", SHA_256, "p", b""), "salt must not be empty"),
        (
            lambda: UserScramCredentialUpsertion("u", SHA_256, "p\udcff"),
            "password cannot be written as UTF-8$",
        ),
        (
            lambda: UserScramCredentialUpsertion("u", ScramCredentialInfo(SHA_256.mechanism, 4095), "p"),
            "iterations must be 4096 to 16384, not 4095",
        ),
        (
            lambda: UserScramCredentialUpsertion("u", ScramCredentialInfo(SHA_256.mechanism, 16385), "p"),
            "iterations must be",
        ),
        (
            lambda: UserScramCredentialUpsertion("u", ScramCredentialInfo(ScramMechanism(3)), "p"),
            "cannot be salted for UNKNOWN_3",
        ),
        (lambda: UserScramCredentialDeletion("", ScramMechanism.SCRAM_SHA_256), "user must not be empty"),
    ],
)
def test_what_no_broker_would_take_is_refused_where_it_is_made(make: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make()
