"""Delegation tokens: as values that keep their secret, and as a broker sees them."""

from __future__ import annotations

import pickle

import pytest

from harness.network.scripted_broker import ScriptedBroker
from kclient.admin import DelegationToken, KafkaAdminClient, TokenInformation
from kclient.errors import (
    DelegationTokenDisabledError,
    DelegationTokenNotFoundError,
    Errors,
    UnsupportedByAuthenticationError,
    UnsupportedVersionError,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages import create_delegation_token as create
from kclient.protocol.messages import describe_delegation_token as describe
from kclient.protocol.messages.expire_delegation_token import ExpireDelegationTokenResponse
from kclient.protocol.messages.renew_delegation_token import RenewDelegationTokenResponse

HMAC = b"\x01secret\xff"
CREATED = create.CreateDelegationTokenResponse(
    principal_type="User",
    principal_name="alice",
    token_requester_principal_type="User",
    token_requester_principal_name="admin",
    issue_timestamp_ms=1,
    expiry_timestamp_ms=2,
    max_timestamp_ms=3,
    token_id="id",
    hmac=HMAC,
)
TOKEN = DelegationToken(TokenInformation("id", "User:alice", "User:admin", ("User:bob",), 1, 2, 3), HMAC)


def test_a_token_is_created_for_its_owner_and_renewers(
    scripted: ScriptedBroker, client: KafkaAdminClient
) -> None:
    scripted.answer(ApiKeys.CREATE_DELEGATION_TOKEN, CREATED, CREATED)
    made = client.create_delegation_token(owner="User:alice", renewers=["User:bob"], max_lifetime_ms=5)
    assert made == TOKEN
    client.create_delegation_token()
    first, second = scripted.received(ApiKeys.CREATE_DELEGATION_TOKEN)
    assert (first.owner_principal_type, first.owner_principal_name) == ("User", "alice")
    assert first.renewers == [create.CreatableRenewers(principal_type="User", principal_name="bob")]
    assert first.max_lifetime_ms == 5
    assert (second.owner_principal_name, second.renewers, second.max_lifetime_ms) == ("", [], -1)


def test_names_of_principals_may_have_colons(scripted: ScriptedBroker, client: KafkaAdminClient) -> None:
    scripted.answer(ApiKeys.CREATE_DELEGATION_TOKEN, CREATED)
    client.create_delegation_token(owner="User:CN=a:b,O=c")
    (request,) = scripted.received(ApiKeys.CREATE_DELEGATION_TOKEN)
    assert (request.owner_principal_type, request.owner_principal_name) == ("User", "CN=a:b,O=c")


def test_a_broker_that_knows_no_other_owners_is_not_asked_for_one(scripted: ScriptedBroker) -> None:
    scripted.versions[ApiKeys.CREATE_DELEGATION_TOKEN] = (1, 2)
    answer = create.CreateDelegationTokenResponse(principal_type="User", principal_name="alice", hmac=HMAC)
    scripted.answer(ApiKeys.CREATE_DELEGATION_TOKEN, answer)
    with KafkaAdminClient(bootstrap_servers=scripted.bootstrap) as client:
        with pytest.raises(UnsupportedVersionError, match="CREATE_DELEGATION_TOKEN"):
            client.create_delegation_token(owner="User:alice")
        assert client.create_delegation_token().token_info.token_requester == "User:alice"
    assert len(scripted.received(ApiKeys.CREATE_DELEGATION_TOKEN)) == 1


def test_tokens_are_renewed_and_ended_by_their_hmac(
    scripted: ScriptedBroker, client: KafkaAdminClient
) -> None:
    scripted.on(
        ApiKeys.RENEW_DELEGATION_TOKEN, lambda h, m: RenewDelegationTokenResponse(expiry_timestamp_ms=7)
    )
    scripted.on(
        ApiKeys.EXPIRE_DELEGATION_TOKEN, lambda h, m: ExpireDelegationTokenResponse(expiry_timestamp_ms=8)
    )
    assert client.renew_delegation_token(HMAC) == 7
    assert client.renew_delegation_token(HMAC, renew_period_ms=60) == 7
    assert client.expire_delegation_token(HMAC) == 8
    assert client.expire_delegation_token(HMAC, expiry_period_ms=0) == 8
    renewals = scripted.received(ApiKeys.RENEW_DELEGATION_TOKEN)
    ends = scripted.received(ApiKeys.EXPIRE_DELEGATION_TOKEN)
    assert {each.hmac for each in [*renewals, *ends]} == {HMAC}
    assert [each.renew_period_ms for each in renewals] == [-1, 60]
    assert [each.expiry_time_period_ms for each in ends] == [-1, 0]


def test_tokens_are_found_by_owner_or_all_of_them(scripted: ScriptedBroker, client: KafkaAdminClient) -> None:
    token = describe.DescribedDelegationToken(
        principal_type="User",
        principal_name="alice",
        token_requester_principal_type="User",
        token_requester_principal_name="admin",
        issue_timestamp=1,
        expiry_timestamp=2,
        max_timestamp=3,
        token_id="id",
        hmac=HMAC,
        renewers=[describe.DescribedDelegationTokenRenewer(principal_type="User", principal_name="bob")],
    )
    answer = describe.DescribeDelegationTokenResponse(tokens=[token])
    scripted.answer(ApiKeys.DESCRIBE_DELEGATION_TOKEN, answer, answer)
    assert client.describe_delegation_token() == [TOKEN]
    assert client.describe_delegation_token(["User:alice"]) == [TOKEN]
    every, one = scripted.received(ApiKeys.DESCRIBE_DELEGATION_TOKEN)
    assert every.owners is None
    assert one.owners == [
        describe.DescribeDelegationTokenOwner(principal_type="User", principal_name="alice")
    ]


def test_what_the_broker_refuses_is_raised_by_its_class(
    scripted: ScriptedBroker, client: KafkaAdminClient
) -> None:
    refused = create.CreateDelegationTokenResponse(error_code=Errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    disabled = describe.DescribeDelegationTokenResponse(error_code=Errors.DELEGATION_TOKEN_AUTH_DISABLED)
    missing = RenewDelegationTokenResponse(error_code=Errors.DELEGATION_TOKEN_NOT_FOUND)
    scripted.answer(ApiKeys.CREATE_DELEGATION_TOKEN, refused)
    scripted.answer(ApiKeys.DESCRIBE_DELEGATION_TOKEN, disabled)
    scripted.answer(ApiKeys.RENEW_DELEGATION_TOKEN, missing)
    with pytest.raises(UnsupportedByAuthenticationError):
        client.create_delegation_token()
    with pytest.raises(DelegationTokenDisabledError):
        client.describe_delegation_token()
    with pytest.raises(DelegationTokenNotFoundError):
        client.renew_delegation_token(HMAC)


def test_the_hmac_is_in_no_repr_and_no_pickle_and_there_as_a_password() -> None:
    for text in (repr(TOKEN), str(TOKEN)):
        assert "secret" not in text
        assert TOKEN.hmac_as_base64 not in text
        assert "User:alice" in text
    assert TOKEN.hmac_as_base64 == "AXNlY3JldP8="
    with pytest.raises(TypeError, match="hmac_as_base64"):
        pickle.dumps(TOKEN)
    assert pickle.loads(pickle.dumps(TOKEN.token_info)) == TOKEN.token_info
