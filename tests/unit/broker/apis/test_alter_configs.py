"""AlterConfigs: settings of a topic that are replaced as a whole, and which request is refused."""

from __future__ import annotations

import pytest

from harness.broker.handlers import Handlers
from kclient.broker.apis.alter_configs import alter_configs
from kclient.protocol.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource

INVALID_CONFIG, INVALID_REQUEST = 40, 42
TOPIC = 2


def replace(
    handlers: Handlers, *given: tuple[str, str | None], validate_only: bool = False, version: int = 2
) -> tuple[int, str | None]:
    """Give topic t the settings `given`; code and text of the answer."""
    resource = AlterConfigsResource(
        resource_type=TOPIC,
        resource_name="t",
        configs=[AlterableConfig(name=name, value=value) for name, value in given],
    )
    request = AlterConfigsRequest(resources=[resource], validate_only=validate_only)
    (answer,) = handlers.ask(alter_configs, request, version).responses
    return answer.error_code, answer.error_message


def overrides(handlers: Handlers) -> dict[str, str]:
    return dict(handlers.topics.cache.topic_configs("t"))


@pytest.fixture
def topic(handlers: Handlers) -> Handlers:
    handlers.topics.create("t", 1, configs={"retention.ms": "5", "segment.ms": "6"})
    return handlers


@pytest.mark.parametrize("version", [0, 1, 2])
def test_what_is_not_named_goes_back_to_its_default(topic: Handlers, version: int) -> None:
    assert replace(topic, ("flush.ms", "9"), ("segment.ms", "7"), version=version) == (0, None)
    assert overrides(topic) == {"flush.ms": "9", "segment.ms": "7"}
    config = topic.led().log.config
    assert (config.segment_ms, config.retention_ms) == (
        7,
        topic.topics.controller.log_config({}).retention_ms,
    )


def test_a_topic_that_comes_twice_is_refused_both_times(topic: Handlers) -> None:
    resources = [
        AlterConfigsResource(
            resource_type=TOPIC, resource_name="t", configs=[AlterableConfig(name="flush.ms", value=value)]
        )
        for value in ("8", "9")
    ]
    answers = topic.ask(alter_configs, AlterConfigsRequest(resources=resources), 2).responses
    assert [answer.error_code for answer in answers] == [INVALID_REQUEST, INVALID_REQUEST]
    assert overrides(topic) == {"retention.ms": "5", "segment.ms": "6"}


def test_no_settings_at_all_leave_the_defaults_alone(topic: Handlers) -> None:
    assert replace(topic) == (0, None)
    assert overrides(topic) == {}


def test_a_setting_without_a_value_is_refused_and_not_taken_for_its_default(topic: Handlers) -> None:
    assert replace(topic, ("flush.ms", "9"), ("retention.ms", None)) == (
        INVALID_REQUEST,
        "retention.ms has no value",
    )
    assert overrides(topic) == {"retention.ms": "5", "segment.ms": "6"}


def test_an_empty_value_is_a_value_that_a_number_cannot_have(topic: Handlers) -> None:
    assert replace(topic, ("retention.ms", ""))[0] == INVALID_CONFIG
    assert overrides(topic) == {"retention.ms": "5", "segment.ms": "6"}


@pytest.mark.parametrize("second", ["9", "8"])
def test_a_setting_that_comes_twice_is_refused(topic: Handlers, second: str) -> None:
    assert replace(topic, ("flush.ms", "9"), ("flush.ms", second)) == (
        INVALID_REQUEST,
        "A setting is in the request more than once",
    )
    assert overrides(topic) == {"retention.ms": "5", "segment.ms": "6"}


def test_one_setting_that_cannot_be_leaves_all_as_they_were(topic: Handlers) -> None:
    assert replace(topic, ("flush.ms", "9"), ("no.such", "1"))[0] == INVALID_CONFIG
    assert replace(topic, ("flush.ms", "9"), ("segment.ms", "soon"))[0] == INVALID_CONFIG
    assert overrides(topic) == {"retention.ms": "5", "segment.ms": "6"}


def test_validating_finds_the_same_errors_and_changes_nothing(topic: Handlers) -> None:
    assert replace(topic, ("flush.ms", "9"), validate_only=True) == (0, None)
    assert replace(topic, ("flush.ms", None), validate_only=True)[0] == INVALID_REQUEST
    assert overrides(topic) == {"retention.ms": "5", "segment.ms": "6"}
