"""`kclient configs` for users, clients and addresses: quotas and credentials."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from harness.network.scripted_broker import ScriptedBroker
from kclient.cli.main import main
from kclient.errors import Errors
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages import alter_client_quotas as alter_quotas
from kclient.protocol.messages import alter_user_scram_credentials as alter_scram
from kclient.protocol.messages import describe_client_quotas as quotas
from kclient.protocol.messages import describe_user_scram_credentials as scram

Captured = pytest.CaptureFixture[str]
Kclient = Callable[..., int]


def entry(values: dict[str, float], **names: str | None) -> quotas.EntryData:
    return quotas.EntryData(
        entity=[
            quotas.EntityData(entity_type=kind.replace("_", "-"), entity_name=name)
            for kind, name in names.items()
        ],
        values=[quotas.ValueData(key=key, value=value) for key, value in values.items()],
    )


@pytest.fixture(autouse=True)
def controller(scripted: ScriptedBroker) -> None:
    """Does what it is told to. Alice has quotas and a credential."""
    entries = [
        entry({"producer_byte_rate": 1024.0}, user="alice"),
        entry({"consumer_byte_rate": 5.5}, user=None, client_id="app"),
    ]
    scripted.on(
        ApiKeys.DESCRIBE_CLIENT_QUOTAS,
        lambda h, m: quotas.DescribeClientQuotasResponse(error_message=None, entries=entries),
    )

    def described(header: Any, message: Any) -> scram.DescribeUserScramCredentialsResponse:
        users = ["alice"] if message.users is None else [user.name for user in message.users]
        return scram.DescribeUserScramCredentialsResponse(
            error_message=None,
            results=[
                scram.DescribeUserScramCredentialsResult(
                    user=user,
                    error_message=None,
                    error_code=0 if user == "alice" else Errors.RESOURCE_NOT_FOUND,
                    credential_infos=[scram.CredentialInfo(mechanism=2, iterations=8192)],
                )
                for user in users
            ],
        )

    scripted.on(ApiKeys.DESCRIBE_USER_SCRAM_CREDENTIALS, described)
    scripted.on(
        ApiKeys.ALTER_USER_SCRAM_CREDENTIALS,
        lambda h, m: alter_scram.AlterUserScramCredentialsResponse(
            results=[
                alter_scram.AlterUserScramCredentialsResult(user=each.name, error_message=None)
                for each in [*m.deletions, *m.upsertions]
            ]
        ),
    )
    scripted.on(
        ApiKeys.ALTER_CLIENT_QUOTAS,
        lambda h, m: alter_quotas.AlterClientQuotasResponse(
            entries=[
                alter_quotas.AlterClientQuotasResponseEntryData(
                    error_message=None,
                    entity=[
                        alter_quotas.AlterClientQuotasResponseEntityData(
                            entity_type=part.entity_type, entity_name=part.entity_name
                        )
                        for part in each.entity
                    ],
                )
                for each in m.entries
            ]
        ),
    )


def rows(captured: Captured) -> list[list[str]]:
    return [line.split("\t") for line in captured.readouterr().out.splitlines()]


def test_users_are_described_with_quotas_and_credentials(
    scripted: ScriptedBroker, kclient: Kclient, capsys: Captured
) -> None:
    assert kclient("configs", "--describe", "--entity-type", "users") == 0
    assert rows(capsys) == [
        ["ENTITY", "NAME", "VALUE", "SOURCE"],
        ["users alice", "producer_byte_rate", "1024.0", "-"],
        ["users default, clients app", "consumer_byte_rate", "5.5", "-"],
        ["users alice", "SCRAM-SHA-512", "iterations=8192", "-"],
    ]
    (asked,) = scripted.received(ApiKeys.DESCRIBE_CLIENT_QUOTAS)
    assert [(each.entity_type, each.match_type, each.match) for each in asked.components] == [
        ("user", 2, None)
    ]
    assert asked.strict


def test_a_user_without_credentials_has_quotas_all_the_same(kclient: Kclient, capsys: Captured) -> None:
    assert kclient("configs", "--describe", "--user", "bob") == 0
    assert "SCRAM" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "components"),
    [
        (("--user-defaults",), [("user", 1, None)]),
        (("--user", "alice", "--client", "app"), [("user", 0, "alice"), ("client-id", 0, "app")]),
        (("--ip", "10.0.0.1"), [("ip", 0, "10.0.0.1")]),
        (("--entity-type", "clients"), [("client-id", 2, None)]),
    ],
)
def test_credentials_are_asked_for_only_where_there_can_be_some(
    scripted: ScriptedBroker, kclient: Kclient, words: tuple[str, ...], components: list[Any]
) -> None:
    assert kclient("configs", "--describe", *words) == 0
    (asked,) = scripted.received(ApiKeys.DESCRIBE_CLIENT_QUOTAS)
    assert [(each.entity_type, each.match_type, each.match) for each in asked.components] == components
    assert scripted.received(ApiKeys.DESCRIBE_USER_SCRAM_CREDENTIALS) == []


def test_json_names_the_entity_by_type(kclient: Kclient, capsys: Captured) -> None:
    assert kclient("configs", "--describe", "--entity-type", "users", "--output", "json") == 0
    assert json.loads(capsys.readouterr().out.splitlines()[1]) == {
        "entity": {"users": None, "clients": "app"},
        "name": "consumer_byte_rate",
        "value": 5.5,
        "source": None,
        "sensitive": False,
    }


def test_credentials_and_quotas_are_set_by_one_command(
    scripted: ScriptedBroker, kclient: Kclient, capsys: Captured
) -> None:
    add = "SCRAM-SHA-256=[iterations=8192,password=a,b],SCRAM-SHA-512=[password=c]],consumer_byte_rate=2048"
    changes = ("--add-config", add, "--delete-config", "producer_byte_rate")
    assert kclient("configs", "--alter", "--user", "alice", *changes) == 0
    assert capsys.readouterr().out == (
        "Changed users alice: set SCRAM-SHA-256, SCRAM-SHA-512, consumer_byte_rate; deleted producer_byte_rate.\n"
    )
    requests = scripted.received(ApiKeys.ALTER_USER_SCRAM_CREDENTIALS)
    assert [len(request.upsertions) for request in requests] == [1, 1]  # brokers refuse both in one
    upsertions = [request.upsertions[0] for request in requests]
    for sent, (hash_, password, iterations) in zip(
        upsertions, [("sha256", b"a,b", 8192), ("sha512", b"c]", 4096)], strict=True
    ):
        assert sent.iterations == iterations
        assert sent.salted_password == hashlib.pbkdf2_hmac(hash_, password, sent.salt, iterations)
    ((altered,),) = [each.entries for each in scripted.received(ApiKeys.ALTER_CLIENT_QUOTAS)]
    assert [(op.key, op.value, op.remove) for op in altered.ops] == [
        ("consumer_byte_rate", 2048.0, False),
        ("producer_byte_rate", 0.0, True),
    ]


def test_credentials_are_deleted(scripted: ScriptedBroker, kclient: Kclient) -> None:
    assert kclient("configs", "--alter", "--user", "alice", "--delete-config", "SCRAM-SHA-512") == 0
    (request,) = scripted.received(ApiKeys.ALTER_USER_SCRAM_CREDENTIALS)
    assert [(each.name, each.mechanism) for each in request.deletions] == [("alice", 2)]
    assert scripted.received(ApiKeys.ALTER_CLIENT_QUOTAS) == []


def test_a_change_can_be_printed_as_json_without_its_values(kclient: Kclient, capsys: Captured) -> None:
    add = "SCRAM-SHA-256=[password=s3cret]"
    assert kclient("configs", "--alter", "--user", "alice", "--add-config", add, "--output", "json") == 0
    out = capsys.readouterr().out
    assert json.loads(out) == {"entity": {"users": "alice"}, "set": ["SCRAM-SHA-256"], "deleted": []}


def test_a_quota_that_is_not_set_cannot_be_deleted_and_then_nothing_is_changed(
    scripted: ScriptedBroker, kclient: Kclient, capsys: Captured
) -> None:
    changes = ("--add-config", "SCRAM-SHA-256=[password=x]", "--delete-config", "request_percentage")
    assert kclient("configs", "--alter", "--user", "alice", *changes) == 1
    assert "users alice: request_percentage cannot be deleted" in " ".join(capsys.readouterr().err.split())
    assert scripted.received(ApiKeys.ALTER_USER_SCRAM_CREDENTIALS) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--user", "a", "--add-config", "retention.ms=1"),
            "retention.ms is no setting there; there are producer_byte",
        ),
        (("--ip", "h", "--add-config", "producer_byte_rate=1"), "there are connection_creation_rate"),
        (
            ("--user", "a", "--add-config", "producer_byte_rate=fast"),
            "producer_byte_rate: the value should be a number",
        ),
        (("--user", "a", "--add-config", "producer_byte_rate=nan"), "should be a number, 0 or more"),
        (("--user", "a", "--add-config", "producer_byte_rate=-1"), "should be a number, 0 or more"),
        (("--client", "a", "--add-config", "SCRAM-SHA-256=[password=s3cret]"), "are settings of users alone"),
        (
            ("--user", "a", "--client", "b", "--add-config", "SCRAM-SHA-256=[password=s3cret]"),
            "of users alone",
        ),
        (
            ("--user-defaults", "--add-config", "SCRAM-SHA-256=[password=s3cret]"),
            "no credentials for every user",
        ),
        (
            ("--user", "a", "--add-config", "SCRAM-SHA-256=[s3cret]"),
            "should be [iterations=NUMBER,password=TEXT]",
        ),
        (("--user", "a", "--add-config", "SCRAM-SHA-256=[password=]"), "should be [iterations=NUMBER"),
        (
            ("--user", "a", "--add-config", "SCRAM-SHA-256=[iterations=1,password=s3cret]"),
            "SCRAM-SHA-256: UserScramCredentialUpsertion: credential_info: iterations must be 4096 to 16384, not 1",
        ),
        (
            ("--user", "a", "--add-config", "SCRAM-SHA-256=[password=p],s3cret=x"),
            "a name is no setting there",
        ),
        (
            ("--entity-type", "users", "--add-config", "x=1"),
            "--alter needs --entity-name or --entity-default",
        ),
        (("--user", "a", "--all", "--add-config", "x=1"), "--all is for --describe"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_asked_and_no_password_repeated(
    scripted: ScriptedBroker, kclient: Kclient, capsys: Captured, words: tuple[str, ...], said: str
) -> None:
    assert kclient("configs", "--alter", *words) == 2
    captured = capsys.readouterr()
    assert said in " ".join(captured.err.split())
    assert "s3cret" not in captured.err + captured.out
    assert scripted.received(ApiKeys.ALTER_CLIENT_QUOTAS) == []
    assert scripted.received(ApiKeys.ALTER_USER_SCRAM_CREDENTIALS) == []


@pytest.mark.parametrize(
    "words",
    [
        ("--add-config", "SCRAM-SHA-256=[password=my", "s3cret]"),
        ("--add-config", "SCRAM-SHA-256=[password=my", "-s3cret]"),
        ("--add=SCRAM-SHA-256=[password=s3cret]",),
        ("--add-confg=SCRAM-SHA-256=[password=s3cret]",),
        ("--add-config", "SCRAM-SHA-256=[password=s3cret]", "--output", "xml"),
    ],
)
def test_the_parser_repeats_no_password_either(capsys: Captured, words: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["configs", "--alter", "--user", "a", *words])
    assert ended.value.code == 2
    assert "s3cret" not in capsys.readouterr().err


def test_a_password_is_in_no_error_of_the_broker_and_no_log(
    scripted: ScriptedBroker, kclient: Kclient, capsys: Captured, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    result = alter_scram.AlterUserScramCredentialsResult(
        user="alice", error_code=Errors.UNACCEPTABLE_CREDENTIAL, error_message="no"
    )
    scripted.answer(
        ApiKeys.ALTER_USER_SCRAM_CREDENTIALS, alter_scram.AlterUserScramCredentialsResponse(results=[result])
    )
    assert (
        kclient("configs", "--alter", "--user", "alice", "--add-config", "SCRAM-SHA-256=[password=s3cret]")
        == 1
    )
    said = capsys.readouterr().err
    assert "alice" in said
    assert "s3cret" not in said + caplog.text
