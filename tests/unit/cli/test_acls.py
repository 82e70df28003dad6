"""`kclient acls`: from its options to the rules that a broker is asked for."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pytest

from harness.network.scripted_broker import ScriptedBroker
from kclient.cli.main import main
from kclient.errors import Errors
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages import create_acls as create
from kclient.protocol.messages import delete_acls as delete
from kclient.protocol.messages import describe_acls as describe

Captured = pytest.CaptureFixture[str]
Kclient = Callable[..., int]

TYPES = {2: "topic", 3: "group", 4: "cluster", 5: "transactional-id", 6: "delegation-token", 7: "user"}
OPERATIONS = {
    2: "ALL",
    3: "READ",
    4: "WRITE",
    5: "CREATE",
    8: "DESCRIBE",
    11: "ALTER_CONFIGS",
    12: "IDEMPOTENT_WRITE",
    13: "CREATE_TOKENS",
}


@pytest.fixture(autouse=True)
def authorizer(scripted: ScriptedBroker) -> None:
    """Creates what it is told to, finds one rule and deletes one for each filter that names alice."""
    one = {
        "resource_type": 2,
        "resource_name": "orders",
        "pattern_type": 3,
        "principal": "User:alice",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    acls = [
        describe.AclDescription(principal=principal, host="*", operation=3, permission_type=3)
        for principal in ("User:bob", "User:alice")
    ]
    resource = describe.DescribeAclsResource(
        resource_type=2, resource_name="orders", pattern_type=3, acls=acls
    )
    scripted.on(
        ApiKeys.CREATE_ACLS,
        lambda h, m: create.CreateAclsResponse(
            results=[create.AclCreationResult(error_message=None) for _ in m.creations]
        ),
    )
    scripted.on(
        ApiKeys.DESCRIBE_ACLS,
        lambda h, m: describe.DescribeAclsResponse(error_message=None, resources=[resource]),
    )

    def deleted(header: Any, message: Any) -> delete.DeleteAclsResponse:
        return delete.DeleteAclsResponse(
            filter_results=[
                delete.DeleteAclsFilterResult(
                    error_message=None,
                    matching_acls=[delete.DeleteAclsMatchingAcl(error_message=None, **one)]
                    if each.principal_filter == "User:alice"
                    else [],
                )
                for each in message.filters
            ]
        )

    scripted.on(ApiKeys.DELETE_ACLS, deleted)


def created(scripted: ScriptedBroker) -> set[tuple[str, str, str]]:
    """Type and name, operation of each rule that was asked for; principal, host and effect where they are unusual."""
    (request,) = scripted.received(ApiKeys.CREATE_ACLS)
    return {
        (
            f"{TYPES[each.resource_type]} {each.resource_name}{'*' if each.resource_pattern_type == 4 else ''}",
            OPERATIONS[each.operation],
            f"{'+' if each.permission_type == 3 else '-'}{each.principal}@{each.host}",
        )
        for each in request.creations
    }


ALICE = ("--allow-principal", "User:alice")
A = "+User:alice@*"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--topic", "t"), {("topic t", "ALL", A)}),
        (("--topic", "t", "--operation", "Read"), {("topic t", "READ", A)}),
        (("--topic", "t", "--operation", "alter-configs"), {("topic t", "ALTER_CONFIGS", A)}),
        (("--topic", "t", "--operation", "AlterConfigs"), {("topic t", "ALTER_CONFIGS", A)}),
        (
            ("--topic", "t", "--topic", "u", "--operation", "Read", "--operation", "Write"),
            {(f"topic {t}", operation, A) for t in "tu" for operation in ("READ", "WRITE")},
        ),
        (("--group", "g-", "--resource-pattern-type", "PREFIXED"), {("group g-*", "ALL", A)}),
        (
            ("--cluster", "--topic", "t", "--resource-pattern-type", "prefixed"),
            {("cluster kafka-cluster", "ALL", A), ("topic t*", "ALL", A)},
        ),
        (("--transactional-id", "x"), {("transactional-id x", "ALL", A)}),
        (("--delegation-token", "d"), {("delegation-token d", "ALL", A)}),
        (
            ("--user-principal", "User:u", "--operation", "CreateTokens"),
            {("user User:u", "CREATE_TOKENS", A)},
        ),
        (
            ("--topic", "t", "--allow-host", "h1", "--deny-principal", "User:eve", "--deny-host", "h2"),
            {("topic t", "ALL", "+User:alice@h1"), ("topic t", "ALL", "-User:eve@h2")},
        ),
        (
            ("--producer", "--topic", "t", "--transactional-id", "x", "--idempotent"),
            {
                *(("topic t", operation, A) for operation in ("WRITE", "DESCRIBE", "CREATE")),
                *(("transactional-id x", operation, A) for operation in ("WRITE", "DESCRIBE")),
                ("cluster kafka-cluster", "IDEMPOTENT_WRITE", A),
            },
        ),
        (
            ("--consumer", "--topic", "t", "--group", "g"),
            {("topic t", "READ", A), ("topic t", "DESCRIBE", A), ("group g", "READ", A)},
        ),
        (
            ("--consumer", "--producer", "--topic", "t", "--group", "g"),
            {*(("topic t", o, A) for o in ("READ", "DESCRIBE", "WRITE", "CREATE")), ("group g", "READ", A)},
        ),
    ],
)
def test_options_become_rules(
    scripted: ScriptedBroker, kclient: Kclient, words: tuple[str, ...], expected: set[tuple[str, str, str]]
) -> None:
    assert kclient("acls", "--add", *ALICE, *words) == 0
    assert created(scripted) == expected


def test_what_was_added_is_printed(kclient: Kclient, capsys: Captured) -> None:
    assert kclient("acls", "--add", *ALICE, "--topic", "t", "--operation", "read") == 0
    assert capsys.readouterr().out == "Added: ALLOW READ to User:alice from * on TOPIC t (LITERAL)\n"


def test_rules_are_listed_in_order_as_a_table_or_as_json(kclient: Kclient, capsys: Captured) -> None:
    assert kclient("acls", "--list") == 0
    assert [line.split("\t") for line in capsys.readouterr().out.splitlines()] == [
        ["RESOURCE TYPE", "NAME", "PATTERN TYPE", "PRINCIPAL", "HOST", "OPERATION", "PERMISSION TYPE"],
        ["TOPIC", "orders", "LITERAL", "User:alice", "*", "READ", "ALLOW"],
        ["TOPIC", "orders", "LITERAL", "User:bob", "*", "READ", "ALLOW"],
    ]
    assert kclient("acls", "--list", "--output", "json") == 0
    assert json.loads(capsys.readouterr().out.splitlines()[0]) == {
        "resource_type": "TOPIC",
        "name": "orders",
        "pattern_type": "LITERAL",
        "principal": "User:alice",
        "host": "*",
        "operation": "READ",
        "permission_type": "ALLOW",
    }


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), [(1, None, 1, None)]),
        (("--resource-pattern-type", "prefixed"), [(1, None, 4, None)]),
        (("--topic", "t"), [(2, "t", 3, None)]),
        (("--topic", "t", "--resource-pattern-type", "match"), [(2, "t", 2, None)]),
        (
            ("--topic", "t", "--cluster", "--resource-pattern-type", "any"),
            [(2, "t", 1, None), (4, "kafka-cluster", 3, None)],
        ),
        (
            ("--group", "g", "--principal", "User:a", "--principal", "User:b"),
            [(3, "g", 3, "User:a"), (3, "g", 3, "User:b")],
        ),
    ],
)
def test_a_list_is_narrowed_by_resources_and_principals(
    scripted: ScriptedBroker, kclient: Kclient, words: tuple[str, ...], expected: list[Any]
) -> None:
    assert kclient("acls", "--list", *words) == 0
    asked = [
        (
            each.resource_type_filter,
            each.resource_name_filter,
            each.pattern_type_filter,
            each.principal_filter,
        )
        for each in scripted.received(ApiKeys.DESCRIBE_ACLS)
    ]
    assert asked == expected


@pytest.mark.parametrize(("answer", "removed"), [("y\n", True), ("YES\n", True), ("n\n", False), ("", False)])
def test_a_removal_is_asked_about_with_what_it_would_remove(
    scripted: ScriptedBroker,
    kclient: Kclient,
    capsys: Captured,
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
    removed: bool,
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    assert kclient("acls", "--remove", *ALICE, "--topic", "orders", "--operation", "read") == 0
    captured = capsys.readouterr()
    assert "ALLOW READ to User:alice from * on TOPIC orders (LITERAL)" in captured.err
    assert "(y/n)" in captured.err
    assert bool(scripted.received(ApiKeys.DELETE_ACLS)) == removed
    said = (
        "Removed: ALLOW READ to User:alice from * on TOPIC orders (LITERAL)"
        if removed
        else "Nothing was removed."
    )
    assert captured.out == said + "\n"


def test_force_asks_nothing_and_without_a_principal_everything_of_the_resource_goes(
    scripted: ScriptedBroker, kclient: Kclient, capsys: Captured
) -> None:
    assert kclient("acls", "--remove", "--force", "--topic", "t", "--resource-pattern-type", "any") == 0
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("Removed nothing.\n", "")
    ((wanted,),) = [each.filters for each in scripted.received(ApiKeys.DELETE_ACLS)]
    assert (wanted.resource_type_filter, wanted.resource_name_filter, wanted.pattern_type_filter) == (
        2,
        "t",
        1,
    )
    assert (wanted.principal_filter, wanted.host_filter, wanted.operation, wanted.permission_type) == (
        None,
        None,
        1,
        1,
    )


def test_a_cluster_without_an_authorizer_is_told_in_one_line(
    scripted: ScriptedBroker, kclient: Kclient, capsys: Captured
) -> None:
    answer = describe.DescribeAclsResponse(error_code=Errors.SECURITY_DISABLED, error_message=None)
    scripted.answer(ApiKeys.DESCRIBE_ACLS, answer)
    assert kclient("acls", "--list") == 1
    assert "no authorizer" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--add --allow-principal User:a", "--add and --remove need a resource: --topic, --group"),
        ("--remove --force", "--add and --remove need a resource"),
        ("--add --topic t", "--add needs --allow-principal or --deny-principal"),
        ("--add --topic t --allow-principal alice", "--allow-principal 'alice' should be as User:alice"),
        ("--list --principal alice", "--principal 'alice' should be as User:alice"),
        ("--add --topic t --allow-host h --deny-principal User:a", "--allow-host needs --allow-principal"),
        ("--add --topic t --principal User:a", "--principal is for --list"),
        ("--list --operation Read", "--list takes resources and --principal"),
        ("--remove --topic t --operation Read", "--remove of single operations needs --allow-principal"),
        ("--remove --topic t --producer", "--remove of single operations needs --allow-principal"),
        ("--add --topic t --allow-principal User:a --idempotent", "--idempotent needs --producer"),
        ("--add --allow-principal User:a --producer --group g", "--producer needs --topic"),
        ("--add --allow-principal User:a --consumer --topic t", "--consumer needs --topic and --group"),
        (
            "--add --allow-principal User:a --producer --topic t --group g",
            "--producer needs nothing of a GROUP",
        ),
        (
            "--add --allow-principal User:a --producer --topic t --cluster",
            "--producer and --consumer are for",
        ),
        (
            "--add --deny-principal User:a --producer --topic t",
            "--producer and --consumer allow what they need",
        ),
        (
            "--add --topic t --allow-principal User:a --operation ClusterAction",
            "--operation CLUSTER_ACTION is none of a TOPIC; there are ALL, READ",
        ),
        (
            "--add --topic t --allow-principal User:a --resource-pattern-type match",
            "--resource-pattern-type match is for --list and --remove",
        ),
        ("--add --topic= --allow-principal User:a", "the name of a resource is empty"),
    ],
)
def test_options_that_do_not_go_together_are_refused_before_anything_is_asked(
    words: str, said: str, capsys: Captured
) -> None:
    assert main(["acls", *words.split()]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--topic t", "one of the arguments --list --add --remove is required"),
        ("--add --operation Raed", "'Raed' is none of ALL, READ"),
        ("--add --operation Any", "'Any' is none of"),
        ("--list --resource-pattern-type prefix", "did you mean prefixed?"),
    ],
)
def test_words_that_are_no_options_are_refused_by_the_parser(words: str, said: str, capsys: Captured) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["acls", *words.split()])
    assert ended.value.code == 2
    assert said in " ".join(capsys.readouterr().err.split())
