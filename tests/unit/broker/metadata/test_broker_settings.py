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
    check_change,
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
        ("num.network.threads", "0"),
        ("producer.id.expiration.ms", "0"),
        ("listener.name.plaintext.max.connections", "0"),
        ("listener.name.plaintext.max.connections", "x"),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=name.replace(".", r"\.")):
        overridden(STARTED_WITH, {name: value})


def test_a_setting_of_a_listener_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"listener\.name\.nosuch: there is no such listener"):
        overridden(STARTED_WITH, {"listener.name.nosuch.max.connections": "5"})


@pytest.mark.parametrize(
    "name",
    [
        "num.io.threads",
        "log.cleaner.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "listener.name.plaintext.num.network.threads",
    ],
)
def test_a_number_of_threads_is_at_most_doubled_or_halved(name: str) -> None:
    before = overridden(STARTED_WITH, {name: "4"})
    for allowed in (2, 4, 8):
        check_change(before, overridden(STARTED_WITH, {name: str(allowed)}))
    for refused in (1, 9):
        with pytest.raises(ConfigError, match=f"from 4 it cannot become {refused}"):
            check_change(before, overridden(STARTED_WITH, {name: str(refused)}))


def test_a_setting_of_one_listener_comes_before_that_of_all() -> None:
    config = BrokerConfig.parse({
        "log.dirs": "/nowhere",
        "listeners": "A://127.0.0.1:0,B://127.0.0.1:0",
        "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT",
        "listener.name.a.max.connections": 5,
        "listener.name.b.connection.failed.authentication.delay.ms": 1,
    })  # fmt: skip
    common = {"num.network.threads": "2", "listener.name.B.max.connections": "7"}
    current = BrokerSettings.of(config, image({"listener.name.b.num.network.threads": "3"}, common)).current
    a, b = map(current.listener_config, current.listeners_with_security())
    assert (a.max_connections, a.num_network_threads) == (5, 2)
    assert (b.max_connections, b.num_network_threads) == (7, 3)
    assert b.connection_failed_authentication_delay_ms == 1


def test_settings_of_a_listener_that_is_no_more_are_said_in_the_log_and_the_others_count(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.ERROR):
        settings = BrokerSettings.of(
            STARTED_WITH, image({"listener.name.gone.max.connections": "5", "max.connections": "9"}, {})
        )
    assert "listener.name.gone" in caplog.text
    assert settings.current.max_connections == 9


def test_secrets_are_in_no_repr() -> None:
    own = {"listener.name.plaintext.ssl.keystore.password": "hunter2"}
    settings = BrokerSettings.of(STARTED_WITH, image(own, {}))
    assert settings.own == own
    assert "hunter2" not in repr(settings)


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
