"""`kclient configs` for topics, brokers, groups and the like."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from harness.network.scripted_broker import ScriptedBroker
from kclient.cli.main import main
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages import describe_configs as describe
from kclient.protocol.messages import incremental_alter_configs as alter
from kclient.protocol.messages import list_config_resources as listing
from kclient.protocol.messages.list_groups import ListedGroup, ListGroupsResponse

Captured = pytest.CaptureFixture[str]
Kclient = Callable[..., int]

# The source of what is set for the resource itself, by its type.
OWN = {2: 1, 4: 2, 8: 6, 16: 7, 32: 8}


@pytest.fixture(autouse=True)
def settings(scripted: ScriptedBroker) -> None:
    """Every resource has a setting of its own, one of all brokers, a default and a secret."""

    def described(header: Any, message: Any) -> describe.DescribeConfigsResponse:
        def setting(name: str, value: str | None, source: int) -> describe.DescribeConfigsResourceResult:
            return describe.DescribeConfigsResourceResult(
                name=name,
                value=value,
                config_source=source,
                is_sensitive=value is None,
                read_only=False,
                documentation=None,
            )

        return describe.DescribeConfigsResponse(
            results=[
                describe.DescribeConfigsResult(
                    error_message=None,
                    resource_type=each.resource_type,
                    resource_name=each.resource_name,
                    configs=[
                        setting("own", "1", OWN[each.resource_type]),
                        setting("every", "2", 3),
                        setting("default", "3", 5),
                        setting("secret", None, OWN[each.resource_type]),
                    ],
                )
                for each in message.resources
            ]
        )

    def altered(header: Any, message: Any) -> alter.IncrementalAlterConfigsResponse:
        return alter.IncrementalAlterConfigsResponse(
            responses=[
                alter.AlterConfigsResourceResponse(
                    error_message=None, resource_type=each.resource_type, resource_name=each.resource_name
                )
                for each in message.resources
            ]
        )

    scripted.on(ApiKeys.DESCRIBE_CONFIGS, described)
    scripted.on(ApiKeys.INCREMENTAL_ALTER_CONFIGS, altered)
    scripted.on(
        ApiKeys.LIST_CONFIG_RESOURCES,
        lambda h, m: listing.ListConfigResourcesResponse(
            config_resources=[listing.ConfigResource(resource_name="r", resource_type=m.resource_types[0])]
        ),
    )
    scripted.on(ApiKeys.LIST_GROUPS, lambda h, m: ListGroupsResponse(groups=[ListedGroup(group_id="g")]))


def rows(captured: Captured) -> list[list[str]]:
    return [line.split("\t") for line in captured.readouterr().out.splitlines()[1:]]


@pytest.mark.parametrize(
    ("words", "entities", "names"),
    [
        (("--topic", "t"), ["topics t"], ["own", "secret"]),
        (("--entity-type", "topics"), ["topics orders"], ["own", "secret"]),
        (("--broker", "0"), ["brokers 0"], ["own", "secret"]),
        (("--broker-defaults",), ["brokers default"], ["every"]),
        (("--broker-logger", "0"), ["broker-loggers 0"], ["default", "every", "own", "secret"]),
        (("--entity-type", "broker-loggers"), ["broker-loggers 0"], ["default", "every", "own", "secret"]),
        (("--entity-type", "client-metrics"), ["client-metrics r"], ["own", "secret"]),
        (("--group", "g"), ["groups g"], ["own", "secret"]),
        (("--entity-type", "groups"), ["groups g", "groups r"], ["own", "secret"]),
        (("--topic", "t", "--all"), ["topics t"], ["default", "every", "own", "secret"]),
    ],
)
def test_what_was_set_for_the_entity_itself_is_described_and_with_all_the_rest(
    kclient: Kclient, capsys: Captured, words: tuple[str, ...], entities: list[str], names: list[str]
) -> None:
    assert kclient("configs", "--describe", *words) == 0
    found = rows(capsys)
    assert [(row[0], row[1]) for row in found] == [(entity, name) for entity in entities for name in names]


def test_all_brokers_are_described_with_what_holds_for_all_of_them(
    kclient: Kclient, capsys: Captured
) -> None:
    assert kclient("configs", "--describe", "--entity-type", "brokers") == 0
    assert [row[:2] for row in rows(capsys)] == [
        ["brokers 0", "own"],
        ["brokers 0", "secret"],
        ["brokers default", "every"],
    ]


def test_brokers_that_list_no_settings_of_groups_are_asked_for_the_groups_alone(
    scripted: ScriptedBroker, kclient: Kclient, capsys: Captured
) -> None:
    scripted.versions[ApiKeys.LIST_CONFIG_RESOURCES] = (0, 0)
    assert kclient("configs", "--describe", "--entity-type", "groups") == 0
    assert {row[0] for row in rows(capsys)} == {"groups g"}
    del scripted.versions[ApiKeys.LIST_CONFIG_RESOURCES]
    assert kclient("configs", "--describe", "--entity-type", "client-metrics") == 1
    assert "LIST_CONFIG_RESOURCES" in capsys.readouterr().err


def test_where_there_is_nothing_nothing_is_asked_for(
    scripted: ScriptedBroker, kclient: Kclient, capsys: Captured
) -> None:
    scripted.topics.clear()
    assert kclient("configs", "--describe", "--entity-type", "topics") == 0
    assert rows(capsys) == []
    assert scripted.received(ApiKeys.DESCRIBE_CONFIGS) == []


def test_secrets_have_no_value(kclient: Kclient, capsys: Captured) -> None:
    assert kclient("configs", "--describe", "--topic", "t") == 0
    assert rows(capsys) == [
        ["topics t", "own", "1", "DYNAMIC_TOPIC_CONFIG"],
        ["topics t", "secret", "[hidden]", "DYNAMIC_TOPIC_CONFIG"],
    ]
    assert kclient("configs", "--describe", "--topic", "t", "--output", "json") == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()][1] == {
        "entity": {"topics": "t"},
        "name": "secret",
        "value": None,
        "source": "DYNAMIC_TOPIC_CONFIG",
        "sensitive": True,
    }


@pytest.mark.parametrize(
    ("words", "resource", "said"),
    [
        (("--topic", "t"), (2, "t"), "topics t"),
        (("--broker", "0"), (4, "0"), "brokers 0"),
        (("--broker-defaults",), (4, ""), "brokers default"),
        (("--entity-type", "broker-loggers", "--entity-name", "0"), (8, "0"), "broker-loggers 0"),
        (("--client-metrics", "m"), (16, "m"), "client-metrics m"),
        (("--group", "g"), (32, "g"), "groups g"),
    ],
)
def test_settings_are_set_one_by_one(
    scripted: ScriptedBroker,
    kclient: Kclient,
    capsys: Captured,
    words: tuple[str, ...],
    resource: tuple[int, str],
    said: str,
) -> None:
    assert kclient("configs", "--alter", *words, "--add-config", "a=1,b=[x,y]") == 0
    ((altered,),) = [each.resources for each in scripted.received(ApiKeys.INCREMENTAL_ALTER_CONFIGS)]
    assert (altered.resource_type, altered.resource_name) == resource
    assert [(each.name, each.config_operation, each.value) for each in altered.configs] == [
        ("a", 0, "1"),
        ("b", 0, "x,y"),
    ]
    assert capsys.readouterr().out == f"Changed {said}: set a, b.\n"


def test_a_value_is_in_no_log(
    scripted: ScriptedBroker, kclient: Kclient, capsys: Captured, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    secret = ("--add-config", "ssl.keystore.password=s3cret")
    assert kclient("configs", "--alter", "--broker", "0", *secret) == 0
    captured = capsys.readouterr()
    assert len(caplog.records) > 3
    assert "s3cret" not in caplog.text + captured.out + captured.err
    assert "s3cret" in str(scripted.received(ApiKeys.INCREMENTAL_ALTER_CONFIGS))


def test_only_what_was_set_for_the_entity_itself_can_be_deleted(
    scripted: ScriptedBroker, kclient: Kclient, capsys: Captured
) -> None:
    assert kclient("configs", "--alter", "--topic", "t", "--delete-config", "own,secret") == 0
    assert capsys.readouterr().out == "Changed topics t: deleted own, secret.\n"
    assert kclient("configs", "--alter", "--topic", "t", "--delete-config", "own,default") == 1
    assert "topics t: default cannot be deleted" in capsys.readouterr().err
    ((altered,),) = [each.resources for each in scripted.received(ApiKeys.INCREMENTAL_ALTER_CONFIGS)]
    assert [(each.name, each.config_operation, each.value) for each in altered.configs] == [
        ("own", 1, None),
        ("secret", 1, None),
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--describe", "--entity-type is missing"),
        ("--describe --topic t --add-config a=1", "are for --alter"),
        ("--describe --topic t --delete-config a", "are for --alter"),
        ("--alter --topic t", "--alter needs --add-config"),
        ("--alter --entity-type topics --add-config a=1", "--alter needs --entity-name or --entity-default"),
        ("--alter --topic t --all --add-config a=1", "--all is for --describe"),
    ],
)
def test_options_that_do_not_go_together_are_refused(capsys: Captured, words: str, said: str) -> None:
    assert main(["configs", *words.split()]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_a_type_that_is_misspelt_is_told(capsys: Captured) -> None:
    with pytest.raises(SystemExit):
        main(["configs", "--describe", "--entity-type", "topic"])
    assert "did you mean topics?" in capsys.readouterr().err
