"""Settings of the broker, changed and described through its APIs (KIP-226)."""

from __future__ import annotations

from typing import Any

import pytest

from harness.broker.handlers import Handlers
from kclient.broker.apis.alter_configs import alter_configs
from kclient.broker.apis.describe_configs import describe_configs
from kclient.broker.apis.incremental_alter_configs import Operation, incremental_alter_configs
from kclient.broker.metadata.registration import DIRECTORIES_SETTING
from kclient.protocol.messages import alter_configs as replacing
from kclient.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kclient.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

TOPIC, BROKER = 2, 4
OWN, ALL = "1", ""
INVALID_CONFIG, INVALID_REQUEST = 40, 42
FROM_BROKER, FROM_ALL, STATIC, DEFAULT = 2, 3, 4, 5


def alter(
    handlers: Handlers, name: str, *changes: tuple[str, Operation, str | None], validate_only: bool = False
) -> int:
    configs = [
        AlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in changes
    ]
    resource = AlterConfigsResource(resource_type=BROKER, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
    code: int = handlers.ask(incremental_alter_configs, request, 1).responses[0].error_code
    return code


def put(handlers: Handlers, name: str, key: str, value: str) -> None:
    assert alter(handlers, name, (key, Operation.SET, value)) == 0


def described(handlers: Handlers, name: str, kind: int = BROKER) -> dict[str, Any]:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    (result,) = handlers.ask(describe_configs, request, 4).results
    assert result.error_code == 0
    return {
        each.name: (each.value, [(s.name, s.value, s.source) for s in each.synonyms])
        for each in result.configs
    }


def retention_ms(handlers: Handlers, topic: str = "t") -> int:
    return handlers.led(topic).log.config.retention_ms


def test_a_default_of_topics_takes_effect_at_once_and_the_level_that_counts_is_told(
    handlers: Handlers,
) -> None:
    handlers.topics.create("t", 1)
    handlers.topics.create("own", 1, configs={"retention.ms": "9"})
    put(handlers, ALL, "log.retention.ms", "6000")
    assert (retention_ms(handlers), retention_ms(handlers, "own")) == (6000, 9)
    put(handlers, OWN, "log.retention.ms", "5000")
    assert (retention_ms(handlers), retention_ms(handlers, "own")) == (5000, 9)
    handlers.topics.create("new", 1)
    assert retention_ms(handlers, "new") == 5000
    name = "log.retention.ms"
    levels = [(name, "5000", FROM_BROKER), (name, "6000", FROM_ALL)]
    assert described(handlers, OWN)[name] == ("5000", [*levels, (name, None, DEFAULT)])
    assert described(handlers, ALL) == {name: ("6000", levels[1:])}
    value, synonyms = described(handlers, "t", TOPIC)["retention.ms"]
    assert (value, synonyms[:2]) == ("5000", levels)
    assert alter(handlers, OWN, (name, Operation.DELETE, None)) == 0
    assert retention_ms(handlers) == 6000
    assert alter(handlers, ALL, (name, Operation.DELETE, None)) == 0
    assert retention_ms(handlers) == 7 * 24 * 3_600_000
    assert described(handlers, ALL) == {}


def test_what_is_only_to_be_checked_changes_nothing(handlers: Handlers) -> None:
    change = ("log.retention.ms", Operation.SET, "5")
    assert alter(handlers, OWN, change, validate_only=True) == 0
    assert alter(handlers, OWN, ("node.id", Operation.SET, "5"), validate_only=True) == INVALID_REQUEST
    assert described(handlers, OWN)["log.retention.ms"][0] is None


@pytest.mark.parametrize("name", [OWN, ALL])
@pytest.mark.parametrize(
    ("key", "operation", "value", "code"),
    [
        ("node.id", Operation.SET, "2", INVALID_REQUEST),
        ("log.retention.hours", Operation.SET, "2", INVALID_REQUEST),
        ("num.partitions", Operation.SET, "2", INVALID_REQUEST),
        ("no.such.setting", Operation.SET, "2", INVALID_REQUEST),
        (DIRECTORIES_SETTING, Operation.SET, "{}", INVALID_REQUEST),
        ("log.retention.ms", Operation.SET, "abc", INVALID_REQUEST),
        ("log.retention.ms", Operation.SET, None, INVALID_REQUEST),
        ("max.connections", Operation.SET, "0", INVALID_REQUEST),
        ("log.retention.ms", Operation.APPEND, "5", INVALID_CONFIG),
        ("node.id", Operation.DELETE, None, 0),
        (DIRECTORIES_SETTING, Operation.DELETE, None, 0),
        ("no.such.setting", Operation.DELETE, None, 0),
    ],
)
def test_what_cannot_be_changed_is_refused_and_stays(
    handlers: Handlers, name: str, key: str, operation: Operation, value: str | None, code: int
) -> None:
    before = handlers.broker.controller.cache.image.configs
    assert alter(handlers, name, (key, operation, value)) == code
    assert handlers.broker.controller.cache.image.configs is before


def test_of_several_settings_all_are_changed_or_none(handlers: Handlers) -> None:
    good, bad = ("log.retention.ms", Operation.SET, "5"), ("node.id", Operation.SET, "2")
    assert alter(handlers, OWN, good, bad) == INVALID_REQUEST
    assert alter(handlers, OWN, good, good) == INVALID_REQUEST
    assert described(handlers, OWN)["log.retention.ms"][0] is None


@pytest.mark.parametrize("name", ["2", "x", "-1"])
def test_there_is_no_other_broker(handlers: Handlers, name: str) -> None:
    assert alter(handlers, name, ("log.retention.ms", Operation.SET, "5")) == INVALID_REQUEST


def test_levels_that_do_not_go_together_are_refused(handlers: Handlers) -> None:
    put(handlers, ALL, "log.cleaner.min.compaction.lag.ms", "20")
    change = ("log.cleaner.max.compaction.lag.ms", Operation.SET, "10")
    assert alter(handlers, OWN, change) == INVALID_REQUEST


def test_a_list_is_added_to_and_taken_from(handlers: Handlers) -> None:
    assert alter(handlers, OWN, ("log.cleanup.policy", Operation.APPEND, "compact")) == 0
    assert described(handlers, OWN)["log.cleanup.policy"][0] == "delete,compact"
    assert alter(handlers, OWN, ("log.cleanup.policy", Operation.SUBTRACT, "delete")) == 0
    assert described(handlers, OWN)["log.cleanup.policy"][0] == "compact"


def test_all_can_be_replaced_at_once(handlers: Handlers) -> None:
    put(handlers, OWN, "log.retention.ms", "5")
    configs = [replacing.AlterableConfig(name="message.max.bytes", value="7000")]
    resource = replacing.AlterConfigsResource(resource_type=BROKER, resource_name=OWN, configs=configs)
    answer = handlers.ask(alter_configs, replacing.AlterConfigsRequest(resources=[resource]), 2)
    assert answer.responses[0].error_code == 0
    now = described(handlers, OWN)
    assert (now["log.retention.ms"][0], now["message.max.bytes"][0]) == (None, "7000")
    configs[0].name = "node.id"
    answer = handlers.ask(alter_configs, replacing.AlterConfigsRequest(resources=[resource]), 2)
    assert answer.responses[0].error_code == INVALID_REQUEST


def test_the_settings_are_there_after_a_restart(handlers: Handlers) -> None:
    handlers.topics.create("t", 1)
    put(handlers, OWN, "log.retention.ms", "5000")
    logged = handlers.topics.logged.configs
    assert logged.of(BROKER, OWN)["log.retention.ms"] == "5000"  # type: ignore[arg-type]
