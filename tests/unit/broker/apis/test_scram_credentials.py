"""SCRAM credentials of users: set, told and taken away."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from harness.broker.handlers import Handlers
from kclient.broker.apis.alter_user_scram_credentials import alter_user_scram_credentials
from kclient.broker.apis.describe_user_scram_credentials import describe_user_scram_credentials
from kclient.broker.security.scram import ScramCredential
from kclient.errors import Errors
from kclient.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kclient.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)

SHA_256, SHA_512 = 1, 2


def password(name: str, mechanism: int = SHA_256, **changes: Any) -> ScramCredentialUpsertion:
    digest = "sha256" if mechanism == SHA_256 else "sha512"
    salted = hashlib.pbkdf2_hmac(digest, b"secret", b"salt", 4096)
    fields = {"iterations": 4096, "salt": b"salt", "salted_password": salted, **changes}
    return ScramCredentialUpsertion(name=name, mechanism=mechanism, **fields)


def alter(handlers: Handlers, *changes: ScramCredentialUpsertion | ScramCredentialDeletion) -> dict[str, int]:
    request = AlterUserScramCredentialsRequest(
        deletions=[each for each in changes if isinstance(each, ScramCredentialDeletion)],
        upsertions=[each for each in changes if isinstance(each, ScramCredentialUpsertion)],
    )
    results = handlers.ask(alter_user_scram_credentials, request, 0).results
    assert all((result.error_message is None) == (result.error_code == 0) for result in results)
    return {result.user: result.error_code for result in results}


def described(handlers: Handlers, *users: str) -> dict[str, Any]:
    asked = [UserName(name=user) for user in users] or None
    answer = handlers.ask(
        describe_user_scram_credentials, DescribeUserScramCredentialsRequest(users=asked), 0
    )
    return {
        result.user: result.error_code
        or [(info.mechanism, info.iterations) for info in result.credential_infos]
        for result in answer.results
    }


def test_passwords_are_set_told_and_taken_away(handlers: Handlers) -> None:
    assert alter(handlers, password("a"), password("b")) == {"a": 0, "b": 0}
    assert alter(handlers, password("a", SHA_512, iterations=8192)) == {"a": 0}
    assert described(handlers) == {"a": [(SHA_256, 4096), (SHA_512, 8192)], "b": [(SHA_256, 4096)]}
    assert alter(handlers, ScramCredentialDeletion(name="a", mechanism=SHA_256)) == {"a": 0}
    assert described(handlers, "a") == {"a": [(SHA_512, 8192)]}


def test_the_broker_keeps_what_recognises_the_password(handlers: Handlers) -> None:
    alter(handlers, password("a"))
    kept = handlers.broker.controller.cache.image.scram.credentials[SHA_256, "a"]
    assert kept == ScramCredential.of_password("SCRAM-SHA-256", "secret", salt=b"salt")


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ([password("a", 3)], Errors.UNSUPPORTED_SASL_MECHANISM),
        ([password("a", iterations=4095)], Errors.UNACCEPTABLE_CREDENTIAL),
        ([password("a", iterations=16385)], Errors.UNACCEPTABLE_CREDENTIAL),
        ([password("a", salt=b"")], Errors.UNACCEPTABLE_CREDENTIAL),
        ([password("")], Errors.UNACCEPTABLE_CREDENTIAL),
        ([ScramCredentialDeletion(name="a", mechanism=SHA_256)], Errors.RESOURCE_NOT_FOUND),
        ([password("a"), password("a")], Errors.DUPLICATE_RESOURCE),
        ([password("a"), password("a", SHA_512)], Errors.DUPLICATE_RESOURCE),
    ],
)
def test_a_user_of_whom_something_cannot_be_changed_stays_as_it_is_and_others_are_changed(
    handlers: Handlers, changes: list[Any], error: Errors
) -> None:
    answered = alter(handlers, *changes, password("b"))
    assert answered == {changes[0].name: int(error), "b": 0}
    assert described(handlers) == {"b": [(SHA_256, 4096)]}


def test_who_is_not_known_or_asked_for_twice_is_told_so(handlers: Handlers) -> None:
    alter(handlers, password("a"))
    assert described(handlers, "a", "b") == {"a": [(SHA_256, 4096)], "b": int(Errors.RESOURCE_NOT_FOUND)}
    assert described(handlers, "a", "a") == {"a": int(Errors.DUPLICATE_RESOURCE)}
