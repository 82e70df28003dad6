"""Settings of the broker, changed while it runs: which level counts, and what cannot be."""

from __future__ import annotations

import logging
from types import MappingProxyType
from typing import Any

import pytest

from kclient.broker.config import BrokerConfig
from kclient.broker.metadata.broker_settings import (
    DYNAMIC_SETTINGS,
    BrokerSettings,
    check_threads,
    dynamic_settings,
    overridden,
)
from kclient.broker.metadata.image.configurations import ConfigurationsImage
from kclient.config.declare import definition_of
from kclient.errors import ConfigError

BROKER = 4
STARTED_WITH = BrokerConfig.parse({"log.dirs": "/nowhere", "log.retention.hours": 1, "max.connections": 7})


def image(own: dict[str, str], common: dict[str, str]) -> ConfigurationsImage:
    levels: dict[Any, Any] = {(BROKER, "1"): own, (BROKER, ""): common}
    return ConfigurationsImage(MappingProxyType(levels))


def test_what_was_changed_for_the_broker_comes_before_what_was_for_all() -> None:
    settings = BrokerSettings.of(
        STARTED_WITH,
        image({"log.retention.ms": "5"}, {"log.retention.ms": "6", "message.max.bytes": "7000"}),
    )
    assert settings.current.log_retention_ms == 5
    assert settings.current.log_config().retention_ms == 5
    assert settings.current.log_config().max_message_bytes == 7000
    assert settings.current.max_connections == 7
    assert settings.started_with is STARTED_WITH


def test_without_changes_the_broker_has_what_it_was_started_with() -> None:
    assert BrokerSettings.of(STARTED_WITH, ConfigurationsImage()).current is STARTED_WITH


def test_what_the_broker_notes_for_itself_is_no_setting() -> None:
    configs = image({"kclient.log.directories": "{}", "log.retention.ms": "5"}, {})
    assert dynamic_settings(configs, "1") == {"log.retention.ms": "5"}


def test_all_dynamic_settings_exist_and_the_coarse_units_are_none() -> None:
    assert {name for name in DYNAMIC_SETTINGS if name not in definition_of(BrokerConfig)} == set()
    assert not DYNAMIC_SETTINGS & {"log.retention.hours", "log.retention.minutes", "log.roll.hours"}
    assert "log.retention.ms" in DYNAMIC_SETTINGS


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("log.retention.ms", "abc"),
        ("message.max.bytes", "-1"),
        ("log.cleanup.policy", "shred"),
        ("max.connections", "0"),
        ("log.cleaner.dedupe.buffer.size", "1000"),
        ("max.connection.creation.rate", "0"),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=name.replace(".", r"\.")):
        overridden(STARTED_WITH, {name: value})


@pytest.mark.parametrize("name", ["num.io.threads", "log.cleaner.threads"])
def test_a_number_of_threads_is_at_most_doubled_or_halved(name: str) -> None:
    before = overridden(STARTED_WITH, {name: "4"})
    for allowed in (2, 4, 8):
        check_threads(before, overridden(STARTED_WITH, {name: str(allowed)}))
    for refused in (1, 9):
        with pytest.raises(ConfigError, match=f"from 4 it cannot become {refused}"):
            check_threads(before, overridden(STARTED_WITH, {name: str(refused)}))


def test_a_value_of_the_metadata_that_cannot_be_is_said_in_the_log_and_the_others_count(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.ERROR):
        settings = BrokerSettings.of(
            STARTED_WITH, image({"log.retention.ms": "abc", "max.connections": "9"}, {})
        )
    assert "log.retention.ms" in caplog.text
    assert (settings.current.log_retention_ms, settings.current.max_connections) == (None, 9)


def test_levels_that_do_not_go_together_are_said_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    own = {"log.cleaner.max.compaction.lag.ms": "10"}
    common = {"log.cleaner.min.compaction.lag.ms": "20"}
    with caplog.at_level(logging.ERROR):
        settings = BrokerSettings.of(STARTED_WITH, image(own, common))
    assert "do not go together" in caplog.text
    assert settings.current is STARTED_WITH
