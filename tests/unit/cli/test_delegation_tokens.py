"""`kclient delegation-tokens`: from its options to what a broker is asked for, and what is printed of the answers."""

from __future__ import annotations

import io
import json
from collections.abc import Callable

import pytest

from harness.network.scripted_broker import ScriptedBroker
from kclient.cli.main import main
from kclient.errors import Errors
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages import create_delegation_token as create
from kclient.protocol.messages import describe_delegation_token as describe
from kclient.protocol.messages.expire_delegation_token import ExpireDelegationTokenResponse
from kclient.protocol.messages.renew_delegation_token import RenewDelegationTokenResponse

Captured = pytest.CaptureFixture[str]
Kclient = Callable[..., int]

HMAC = b"\x01secret\xff"
SECRET = "AXNlY3JldP8="
DAY_MS = 86_400_000


@pytest.fixture(autouse=True)
def tokens(scripted: ScriptedBroker) -> None:
    """Creates what it is told to, has two tokens of alice, and renews and ends what it is told to."""
    owner = {"principal_type": "User", "principal_name": "alice"}
    requester = {"token_requester_principal_type": "User", "token_requester_principal_name": "admin"}
    renewers = [
        describe.DescribedDelegationTokenRenewer(principal_type="User", principal_name=name) for name in "bc"
    ]
    described = [
        describe.DescribedDelegationToken(
            token_id=name,
            hmac=HMAC,
            issue_timestamp=0,
            expiry_timestamp=DAY_MS,
            max_timestamp=2 * DAY_MS,
            renewers=renewers,
            **owner,
            **requester,
        )
        for name in ("second", "first")
    ]
    made = create.CreateDelegationTokenResponse(
        token_id="made", hmac=HMAC, issue_timestamp_ms=0, expiry_timestamp_ms=DAY_MS, **owner, **requester
    )
    found = describe.DescribeDelegationTokenResponse(tokens=described)
    scripted.on(ApiKeys.CREATE_DELEGATION_TOKEN, lambda h, m: made)
    scripted.on(ApiKeys.DESCRIBE_DELEGATION_TOKEN, lambda h, m: found)
    scripted.on(
        ApiKeys.RENEW_DELEGATION_TOKEN, lambda h, m: RenewDelegationTokenResponse(expiry_timestamp_ms=DAY_MS)
    )
    scripted.on(
        ApiKeys.EXPIRE_DELEGATION_TOKEN, lambda h, m: ExpireDelegationTokenResponse(expiry_timestamp_ms=0)
    )


def test_a_token_is_created_for_who_is_named_and_printed_with_its_secret(
    scripted: ScriptedBroker, kclient: Kclient, capsys: Captured
) -> None:
    whose = (
        "--owner-principal",
        "User:alice",
        "--renewer-principal",
        "User:b",
        "--renewer-principal",
        "User:c",
    )
    assert kclient("delegation-tokens", "--create", *whose, "--max-life-time-period", "5") == 0
    header, row = (line.split("\t") for line in capsys.readouterr().out.splitlines())
    assert header == [
        *("TOKEN ID", "HMAC", "OWNER", "REQUESTER", "RENEWERS"),
        *("ISSUE DATE", "EXPIRY DATE", "MAX DATE"),
    ]
    assert row[:7] == [
        *("made", SECRET, "User:alice", "User:admin", "User:b,User:c"),
        *("1970-01-01T00:00:00+00:00", "1970-01-02T00:00:00+00:00"),
    ]
    (asked,) = scripted.received(ApiKeys.CREATE_DELEGATION_TOKEN)
    assert (asked.owner_principal_type, asked.owner_principal_name) == ("User", "alice")
    assert [each.principal_name for each in asked.renewers] == ["b", "c"]
    assert asked.max_lifetime_ms == 5


@pytest.mark.parametrize("period", [(), ("--max-life-time-period", "-1")])
def test_a_period_that_is_left_out_or_minus_one_is_the_brokers(
    scripted: ScriptedBroker, kclient: Kclient, period: tuple[str, ...]
) -> None:
    assert kclient("delegation-tokens", "--create", *period) == 0
    (asked,) = scripted.received(ApiKeys.CREATE_DELEGATION_TOKEN)
    assert (asked.owner_principal_name, asked.renewers, asked.max_lifetime_ms) == ("", [], -1)


def test_tokens_are_described_by_owner_in_order_as_a_table_or_as_json(
    scripted: ScriptedBroker, kclient: Kclient, capsys: Captured
) -> None:
    assert kclient("delegation-tokens", "--describe") == 0
    assert [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()] == [
        *("TOKEN ID", "first", "second")
    ]
    owners = ("--owner-principal", "User:alice", "--owner-principal", "User:bob")
    assert kclient("delegation-tokens", "--describe", *owners, "--output", "json") == 0
    assert json.loads(capsys.readouterr().out.splitlines()[0]) == {
        "token_id": "first",
        "hmac": SECRET,
        "owner": "User:alice",
        "requester": "User:admin",
        "renewers": ["User:b", "User:c"],
        "issue_timestamp_ms": 0,
        "expiry_timestamp_ms": DAY_MS,
        "max_timestamp_ms": 2 * DAY_MS,
    }
    every, two = scripted.received(ApiKeys.DESCRIBE_DELEGATION_TOKEN)
    assert every.owners is None
    assert [each.principal_name for each in two.owners] == ["alice", "bob"]


@pytest.mark.parametrize("words", [(), ("-1",), ("0",), ("60",)])
def test_tokens_are_renewed_and_ended_by_their_secret(
    scripted: ScriptedBroker, kclient: Kclient, capsys: Captured, words: tuple[str, ...]
) -> None:
    for action, option in (("--renew", "--renew-time-period"), ("--expire", "--expiry-time-period")):
        period = (option, *words) if words else ()
        assert kclient("delegation-tokens", action, "--hmac", SECRET, *period) == 0
    assert capsys.readouterr().out == (
        "Renewed: the token's time ends at 1970-01-02T00:00:00+00:00.\n"
        "Ended: the token's time ends at 1970-01-01T00:00:00+00:00.\n"
    )
    (renewed,) = scripted.received(ApiKeys.RENEW_DELEGATION_TOKEN)
    (ended,) = scripted.received(ApiKeys.EXPIRE_DELEGATION_TOKEN)
    assert (renewed.hmac, ended.hmac) == (HMAC, HMAC)
    period_ms = int(words[0]) if words else -1
    assert (renewed.renew_period_ms, ended.expiry_time_period_ms) == (period_ms, period_ms)


def test_a_secret_comes_from_standard_input(
    scripted: ScriptedBroker, kclient: Kclient, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{SECRET}\n"))
    assert kclient("delegation-tokens", "--renew", "--hmac", "-", "--output", "json") == 0
    assert json.loads(capsys.readouterr().out) == {"expiry_timestamp_ms": DAY_MS}
    assert scripted.received(ApiKeys.RENEW_DELEGATION_TOKEN)[0].hmac == HMAC


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--renew",), "--renew and --expire need --hmac"),
        (("--renew", "--hmac", "s3cr#t"), "--hmac should be the Base64 text"),
        (("--renew", "--hmac", "s3crét"), "--hmac should be the Base64 text"),
        (("--renew", "--hmac", ""), "--hmac should be the Base64 text"),
        (("--describe", "--hmac", SECRET), "--hmac is not for --describe"),
        (("--create", "--renew-time-period", "1"), "--renew-time-period is not for --create"),
        (("--expire", "--hmac", SECRET, "--renew-time-period", "-1"), "is not for --expire"),
        (("--renew", "--hmac", SECRET, "--owner-principal", "User:a"), "is not for --renew"),
        (("--describe", "--renewer-principal", "User:a"), "--renewer-principal is not for --describe"),
        (("--create", "--max-life-time-period", "0"), "--max-life-time-period must be 1 or more"),
        (("--create", "--owner-principal", "alice"), "--owner-principal 'alice' should be as User:alice"),
        (("--create", "--owner-principal", "U:a", "--owner-principal", "U:b"), "takes one --owner-principal"),
    ],
)
def test_what_does_not_fit_is_refused_before_a_broker_is_asked(
    words: tuple[str, ...], reason: str, capsys: Captured
) -> None:
    assert main(["delegation-tokens", "--bootstrap-server", "127.0.0.1:1", *words]) == 2
    said = capsys.readouterr().err
    assert reason in said
    assert "s3cr" not in said
    assert SECRET not in said


@pytest.mark.parametrize("word", ["x", "-2", "1.5"])
def test_a_period_is_a_whole_number(word: str, capsys: Captured) -> None:
    with pytest.raises(SystemExit):
        main(["delegation-tokens", "--create", "--max-life-time-period", word])
    assert "--max-life-time-period" in capsys.readouterr().err


def test_a_secret_in_the_wrong_place_is_not_repeated(capsys: Captured) -> None:
    with pytest.raises(SystemExit):
        main(["delegation-tokens", "--renew", SECRET])
    assert SECRET not in capsys.readouterr().err


def test_a_refusal_of_the_broker_is_one_line(
    scripted: ScriptedBroker, kclient: Kclient, capsys: Captured
) -> None:
    refused = RenewDelegationTokenResponse(error_code=Errors.DELEGATION_TOKEN_OWNER_MISMATCH)
    scripted.on(ApiKeys.RENEW_DELEGATION_TOKEN, lambda h, m: refused)
    assert kclient("delegation-tokens", "--renew", "--hmac", SECRET) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert SECRET not in said
