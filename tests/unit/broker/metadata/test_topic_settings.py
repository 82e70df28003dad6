"""Settings as clients are shown them: where a value comes from, its type, and its text."""

from __future__ import annotations

import pytest

from kclient.broker.config import BrokerConfig
from kclient.broker.log.config import LogConfig
from kclient.broker.metadata.broker_settings import BrokerSettings
from kclient.broker.metadata.topic_settings import (
    ConfigSource,
    ConfigType,
    described_broker_settings,
    described_settings,
)
from kclient.protocol.messages.describe_configs import DescribeConfigsResourceResult

TOPIC, STATIC, DEFAULT = (
    ConfigSource.DYNAMIC_TOPIC_CONFIG,
    ConfigSource.STATIC_BROKER_CONFIG,
    ConfigSource.DEFAULT_CONFIG,
)


def of_topic(config: BrokerConfig, name: str, **overrides: str) -> DescribeConfigsResourceResult:
    """The setting of a topic with these overrides, `_` in their names for `.`."""
    changed = {key.replace("_", "."): value for key, value in overrides.items()}
    effective = LogConfig.from_topic_configs(changed, config.log_config())
    (found,) = [
        each for each in described_settings(BrokerSettings(config), effective, changed) if each.name == name
    ]
    return found


def sources(described: DescribeConfigsResourceResult) -> list[tuple[str, str | None, int]]:
    return [(synonym.name, synonym.value, synonym.source) for synonym in described.synonyms]


def of_broker(config: BrokerConfig) -> dict[str, DescribeConfigsResourceResult]:
    return {each.name: each for each in described_broker_settings(BrokerSettings(config))}


PLAIN = BrokerConfig(log_dirs=["/a", "/b"])
WEEK_MS, HOUR_MS = "604800000", "3600000"


def test_a_default_has_the_brokers_name_as_its_only_synonym() -> None:
    found = of_topic(PLAIN, "retention.ms")
    assert (found.value, found.config_source) == (WEEK_MS, DEFAULT)
    assert sources(found) == [("log.retention.ms", WEEK_MS, DEFAULT)]


def test_values_that_take_effect_one_behind_the_other_are_told_in_this_order() -> None:
    config = BrokerConfig(log_dirs=["/a"], log_retention_hours=1)
    found = of_topic(config, "retention.ms", retention_ms="5")
    assert (found.value, found.config_source) == ("5", TOPIC)
    assert sources(found) == [
        ("retention.ms", "5", TOPIC),
        ("log.retention.ms", HOUR_MS, STATIC),
        ("log.retention.ms", WEEK_MS, DEFAULT),
    ]


def test_a_default_that_the_broker_changed_comes_from_the_broker() -> None:
    found = of_topic(BrokerConfig(log_dirs=["/a"], log_retention_hours=1), "retention.ms")
    assert (found.value, found.config_source) == (HOUR_MS, STATIC)


def test_an_override_with_the_value_of_the_default_is_an_override_all_the_same() -> None:
    assert of_topic(PLAIN, "retention.ms", retention_ms=WEEK_MS).config_source == TOPIC


def test_a_setting_that_only_topics_have_has_no_synonym_of_the_broker() -> None:
    name = "unclean.leader.election.enable"
    assert (sources(of_topic(PLAIN, name)), of_topic(PLAIN, name).config_source) == ([], DEFAULT)
    found = of_topic(PLAIN, name, unclean_leader_election_enable="true")
    assert sources(found) == [(name, "true", TOPIC)]


def test_the_defaults_of_compaction_are_the_brokers() -> None:
    config = BrokerConfig(log_dirs=["/a"], log_cleaner_min_cleanable_ratio=0.25)
    found = of_topic(config, "min.cleanable.dirty.ratio")
    assert (found.value, found.config_source) == ("0.25", STATIC)
    assert sources(found) == [
        ("log.cleaner.min.cleanable.ratio", "0.25", STATIC),
        ("log.cleaner.min.cleanable.ratio", "0.5", DEFAULT),
    ]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("preallocate", ConfigType.BOOLEAN),
        ("retention.ms", ConfigType.LONG),
        ("min.cleanable.dirty.ratio", ConfigType.DOUBLE),
        ("cleanup.policy", ConfigType.LIST),
        ("compression.type", ConfigType.STRING),
    ],
)
def test_a_topics_setting_has_the_type_of_its_value(name: str, kind: ConfigType) -> None:
    assert of_topic(PLAIN, name).config_type == kind


def test_a_brokers_setting_comes_from_the_broker_if_it_differs_from_the_default() -> None:
    found = of_broker(BrokerConfig(log_dirs=["/a"], num_partitions=3, num_io_threads=4))
    assert [found[name].config_source for name in ("log.dirs", "num.partitions", "num.io.threads")] == [
        STATIC,
        STATIC,
        DEFAULT,
    ]
    assert sources(found["num.partitions"]) == [("num.partitions", "3", STATIC)]


def test_values_of_the_broker_are_written_as_its_file_has_them() -> None:
    found = of_broker(PLAIN)
    assert found["log.dirs"].value == "/a,/b"
    assert found["log.preallocate"].value == "false"
    assert found["advertised.listeners"].value == ""
    assert found["log.roll.ms"].value is None
    assert found["num.partitions"].value == "1"


def test_all_settings_are_in_order_of_their_names() -> None:
    names = [each.name for each in described_settings(BrokerSettings(PLAIN), PLAIN.log_config(), {})]
    assert names == sorted(names)
    assert list(of_broker(PLAIN)) == sorted(of_broker(PLAIN))
