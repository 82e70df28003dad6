"""IncrementalAlterConfigs: what each operation makes of a setting, and which cannot be."""

from __future__ import annotations

import pytest

from harness.broker.handlers import Handlers
from kclient.broker.apis.incremental_alter_configs import Operation, incremental_alter_configs
from kclient.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

INVALID_CONFIG, INVALID_REQUEST = 40, 42
SET, DELETE, APPEND, SUBTRACT = Operation
TOPIC = 2


def alter(
    handlers: Handlers, *changes: tuple[str, int, str | None], validate_only: bool = False
) -> tuple[int, str | None]:
    """Make (name, operation, value) changes to topic t; code and text of the answer."""
    resource = AlterConfigsResource(
        resource_type=TOPIC,
        resource_name="t",
        configs=[
            AlterableConfig(name=name, config_operation=operation, value=value)
            for name, operation, value in changes
        ],
    )
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
    (answer,) = handlers.ask(incremental_alter_configs, request, 1).responses
    return answer.error_code, answer.error_message


def overrides(handlers: Handlers) -> dict[str, str]:
    return dict(handlers.topics.cache.topic_configs("t"))


@pytest.fixture
def topic(handlers: Handlers) -> Handlers:
    handlers.topics.create("t", 1, configs={"retention.ms": "5"})
    return handlers


def test_changes_of_one_request_are_made_together(topic: Handlers) -> None:
    changes = [("flush.ms", SET, "9"), ("retention.ms", DELETE, None), ("cleanup.policy", APPEND, "compact")]
    assert alter(topic, *changes) == (0, None)
    assert overrides(topic) == {"flush.ms": "9", "cleanup.policy": "delete,compact"}


def test_one_change_that_cannot_be_undoes_all(topic: Handlers) -> None:
    assert alter(topic, ("flush.ms", SET, "9"), ("segment.ms", SET, "soon"))[0] == INVALID_CONFIG
    assert alter(topic, ("retention.ms", DELETE, None), ("no.such", SET, "1"))[0] == INVALID_CONFIG
    assert overrides(topic) == {"retention.ms": "5"}


def test_a_setting_that_comes_twice_is_refused(topic: Handlers) -> None:
    code, text = alter(topic, ("flush.ms", SET, "9"), ("flush.ms", DELETE, None))
    assert (code, text) == (INVALID_REQUEST, "A setting is in the request more than once")
    assert overrides(topic) == {"retention.ms": "5"}


def test_deleting_needs_no_value_and_no_override(topic: Handlers) -> None:
    assert alter(topic, ("flush.ms", DELETE, None)) == (0, None)
    assert alter(topic, ("retention.ms", DELETE, "5")) == (0, None)
    assert overrides(topic) == {}
    assert alter(topic, ("no.such", DELETE, None))[0] == INVALID_CONFIG


@pytest.mark.parametrize("operation", [SET, APPEND, SUBTRACT])
def test_other_operations_need_a_value(topic: Handlers, operation: int) -> None:
    assert alter(topic, ("cleanup.policy", operation, None)) == (
        INVALID_REQUEST,
        "cleanup.policy has no value",
    )


@pytest.mark.parametrize(
    ("policy", "operation", "value", "changed"),
    [
        pytest.param("delete", APPEND, "compact", "delete,compact", id="one is added"),
        pytest.param("delete", APPEND, " compact ", "delete,compact", id="with spaces"),
        pytest.param("delete", APPEND, "delete", "delete", id="one that is there"),
        pytest.param("delete,compact", SUBTRACT, "delete", "compact", id="one is taken"),
        pytest.param(
            "delete,compact", SUBTRACT, "delete , none", "compact", id="one that is not there as well"
        ),
        pytest.param("delete", SUBTRACT, "compact", "delete", id="only one that is not there"),
    ],
)
def test_a_list_is_added_to_and_taken_from(
    topic: Handlers, policy: str, operation: int, value: str, changed: str
) -> None:
    alter(topic, ("cleanup.policy", SET, policy))
    assert alter(topic, ("cleanup.policy", operation, value)) == (0, None)
    assert overrides(topic)["cleanup.policy"] == changed


def test_the_last_of_a_list_cannot_be_taken(topic: Handlers) -> None:
    assert alter(topic, ("cleanup.policy", SUBTRACT, "delete"))[0] == INVALID_CONFIG
    assert "cleanup.policy" not in overrides(topic)


@pytest.mark.parametrize("operation", [APPEND, SUBTRACT])
def test_what_is_no_list_is_neither_added_to_nor_taken_from(topic: Handlers, operation: int) -> None:
    code, text = alter(topic, ("retention.ms", operation, "5"))
    assert code == INVALID_CONFIG
    assert "retention.ms is no list" in (text or "")


@pytest.mark.parametrize("operation", [4, -1, 127])
def test_an_operation_that_there_is_not_is_refused(topic: Handlers, operation: int) -> None:
    assert alter(topic, ("flush.ms", operation, "9")) == (
        INVALID_REQUEST,
        f"There is no operation {operation}",
    )


def test_validating_finds_the_same_errors_and_changes_nothing(topic: Handlers) -> None:
    assert alter(topic, ("flush.ms", SET, "9"), validate_only=True) == (0, None)
    assert alter(topic, ("flush.ms", SET, "soon"), validate_only=True)[0] == INVALID_CONFIG
    assert overrides(topic) == {"retention.ms": "5"}


def test_the_brokers_default_is_what_a_list_is_added_to(topic: Handlers) -> None:
    assert alter(topic, ("cleanup.policy", APPEND, "compact")) == (0, None)
    assert topic.led().log.config.cleanup_policy == ("delete", "compact")
