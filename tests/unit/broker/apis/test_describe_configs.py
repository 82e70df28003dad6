"""DescribeConfigs: which resources have settings, and how much is told of them."""

from __future__ import annotations

from typing import Any

import pytest

from harness.broker.handlers import Handlers
from kclient.broker.apis.describe_configs import describe_configs
from kclient.broker.config import BrokerConfig
from kclient.broker.log.config import LogConfig
from kclient.broker.metadata.broker_settings import DYNAMIC_SETTINGS
from kclient.config.declare import definition_of
from kclient.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

UNKNOWN_TOPIC, INVALID_TOPIC, INVALID_REQUEST = 3, 17, 42
TOPIC, BROKER, BROKER_LOGGER, GROUP = 2, 4, 8, 32


def describe(
    handlers: Handlers,
    *resources: tuple[int, str],
    keys: list[str] | None = None,
    version: int = 4,
    **fields: Any,
) -> list[Any]:
    asked = [
        DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
        for kind, name in resources
    ]
    request = DescribeConfigsRequest(resources=asked, **fields)
    results: list[Any] = handlers.ask(describe_configs, request, version).results
    return results


def test_all_settings_are_told_if_none_are_named(handlers: Handlers) -> None:
    handlers.topics.create("t", 1)
    topic, broker = describe(handlers, (TOPIC, "t"), (BROKER, "1"))
    assert {config.name for config in topic.configs} == set(LogConfig().to_topic_configs())
    assert {config.name for config in broker.configs} == {key.name for key in definition_of(BrokerConfig)}


def test_only_settings_that_are_named_are_told(handlers: Handlers) -> None:
    handlers.topics.create("t", 1)
    (result,) = describe(handlers, (TOPIC, "t"), keys=["flush.ms", "no.such", "flush.ms"])
    assert (result.error_code, [config.name for config in result.configs]) == (0, ["flush.ms"])


def test_an_empty_list_of_settings_means_all_of_them(handlers: Handlers) -> None:
    handlers.topics.create("t", 1)
    (result,) = describe(handlers, (TOPIC, "t"), keys=[])
    assert {config.name for config in result.configs} == set(LogConfig().to_topic_configs())


def test_an_unknown_type_of_resource_refuses_the_whole_request(handlers: Handlers) -> None:
    handlers.topics.create("t", 1)
    results = describe(handlers, (TOPIC, "t"), (99, "x"))
    assert [(result.resource_name, result.error_code, result.configs) for result in results] == [
        ("t", INVALID_REQUEST, []),
        ("x", INVALID_REQUEST, []),
    ]
    assert {result.error_message for result in results} == {"There is no resource type 99"}


@pytest.mark.parametrize("name", ["", "a/b"])
def test_a_topic_that_cannot_be_is_not_merely_unknown(handlers: Handlers, name: str) -> None:
    (result,) = describe(handlers, (TOPIC, name))
    assert result.error_code == INVALID_TOPIC


def test_each_resource_succeeds_or_fails_by_itself(handlers: Handlers) -> None:
    handlers.topics.create("t", 1)
    results = describe(
        handlers,
        (TOPIC, "none"),
        (BROKER, "2"),
        (BROKER, "x"),
        (BROKER_LOGGER, "1"),
        (GROUP, "g"),
        (TOPIC, "t"),
    )
    assert [result.error_code for result in results] == [UNKNOWN_TOPIC, *[INVALID_REQUEST] * 4, 0]
    assert [bool(result.configs) for result in results] == [False] * 5 + [True]
    assert [(result.resource_type, result.resource_name) for result in results[3:5]] == [
        (BROKER_LOGGER, "1"), (GROUP, "g"),
    ]  # fmt: skip
    assert "no broker 'x', only 1" in results[2].error_message
    assert results[5].error_message is None


def test_the_settings_of_all_brokers_together_are_none(handlers: Handlers) -> None:
    (result,) = describe(handlers, (BROKER, ""))
    assert (result.error_code, result.configs) == (0, [])


@pytest.mark.parametrize("resource", [(TOPIC, "t"), (BROKER, "1")], ids=["topic", "broker"])
@pytest.mark.parametrize("synonyms", [False, True])
@pytest.mark.parametrize("documentation", [False, True])
def test_synonyms_and_documentation_are_told_to_who_asks_for_them(
    handlers: Handlers, resource: tuple[int, str], synonyms: bool, documentation: bool
) -> None:
    handlers.topics.create("t", 1, configs={"retention.ms": "5"})
    (result,) = describe(handlers, resource, include_synonyms=synonyms, include_documentation=documentation)
    assert any(config.synonyms for config in result.configs) == synonyms
    assert any(config.documentation for config in result.configs) == documentation
    sources = {config.name: config.config_source for config in result.configs}
    if resource[0] == TOPIC:
        assert sources["retention.ms"] == 1, "the source needs no synonyms"


def test_only_settings_of_the_broker_that_need_a_restart_are_read_only(handlers: Handlers) -> None:
    handlers.topics.create("t", 1)
    topic, broker = describe(handlers, (TOPIC, "t"), (BROKER, "1"))
    assert {config.read_only for config in topic.configs} == {False}
    assert {config.name for config in broker.configs if not config.read_only} == DYNAMIC_SETTINGS
