"""Settings of topics and of the broker as clients are shown them: with where each value comes from."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from kclient.broker.config import BROKER_NAME_OF_TOPIC_SETTING, BrokerConfig
from kclient.broker.log.config import LogConfig
from kclient.broker.metadata.broker_settings import (
    BrokerSettings,
    is_dynamic,
    is_secret,
    listener_setting,
)
from kclient.config import Password, Type
from kclient.config.declare import definition_of
from kclient.protocol.messages.describe_configs import DescribeConfigsResourceResult, DescribeConfigsSynonym


class ConfigSource(enum.IntEnum):
    """The source of a setting's value, by its number in the protocol."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5


class ConfigType(enum.IntEnum):
    """The type of a setting's value, by its number in the protocol."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


def _synonym(name: str, value: str | None, source: ConfigSource) -> DescribeConfigsSynonym:
    """A value that takes effect if those before it are taken away."""
    return DescribeConfigsSynonym(name=name, value=value, source=int(source))


def described_settings(
    settings: BrokerSettings, effective: LogConfig, overrides: Mapping[str, str]
) -> list[DescribeConfigsResourceResult]:
    """All settings of a topic with these overrides, in order of their names."""
    defaults = settings.started_with.log_config().to_topic_configs()
    unset = LogConfig()
    original = unset.to_topic_configs()
    described = []
    for name, value in effective.to_topic_configs().items():
        synonyms = []
        if name in overrides:
            synonyms.append(_synonym(name, value, ConfigSource.DYNAMIC_TOPIC_CONFIG))
        broker_name = BROKER_NAME_OF_TOPIC_SETTING.get(name)
        if broker_name is not None:
            synonyms += _changed(settings, broker_name)
            if defaults[name] != original[name]:
                synonyms.append(_synonym(broker_name, defaults[name], ConfigSource.STATIC_BROKER_CONFIG))
            synonyms.append(_synonym(broker_name, original[name], ConfigSource.DEFAULT_CONFIG))
        described.append(
            DescribeConfigsResourceResult(
                name=name,
                value=value,
                config_source=synonyms[0].source if synonyms else int(ConfigSource.DEFAULT_CONFIG),
                synonyms=synonyms,
                config_type=int(_topic_type(getattr(unset, name.replace(".", "_")))),
                documentation=LogConfig.doc(name),
            )
        )
    return described


def _changed(settings: BrokerSettings, name: str) -> list[DescribeConfigsSynonym]:
    """The values that a setting of the broker was given while it ran."""
    levels = (
        (settings.own, ConfigSource.DYNAMIC_BROKER_CONFIG),
        (settings.common, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
    )
    return [_synonym(name, _shown(name, level[name]), source) for level, source in levels if name in level]


def _shown(name: str, value: str) -> str | None:
    return None if is_secret(name) else value


def described_common_settings(settings: BrokerSettings) -> list[DescribeConfigsResourceResult]:
    """The settings of all brokers together, in order of their names: those that were changed at run time."""
    return [_described_change(name, _changed(settings, name)[-1:]) for name in sorted(settings.common)]


def _described_change(name: str, synonyms: list[DescribeConfigsSynonym]) -> DescribeConfigsResourceResult:
    """A setting of which nothing is told but what it was given at run time."""
    key = definition_of(BrokerConfig)[listener_setting(name) or name]
    return DescribeConfigsResourceResult(
        name=name,
        value=synonyms[0].value,
        config_source=synonyms[0].source,
        is_sensitive=is_secret(name),
        synonyms=synonyms,
        config_type=int(ConfigType[key.type.name]),
        documentation=key.doc,
    )


def described_broker_settings(settings: BrokerSettings) -> list[DescribeConfigsResourceResult]:
    """All settings of the broker, in order of their names; of listeners those that were changed at run time."""
    of_listeners = {name for name in (*settings.own, *settings.common) if listener_setting(name) is not None}
    described = [_described_change(name, _changed(settings, name)) for name in of_listeners]
    for key in definition_of(BrokerConfig):
        field = key.name.replace(".", "_")
        value, given = getattr(settings.current, field), getattr(settings.started_with, field)
        source = ConfigSource.DEFAULT_CONFIG if given == key.default else ConfigSource.STATIC_BROKER_CONFIG
        secret = key.type is Type.PASSWORD or isinstance(value, Password)
        text = None if secret else _text(value)
        synonyms = [
            *_changed(settings, key.name),
            _synonym(key.name, None if secret else _text(given), source),
        ]
        described.append(
            DescribeConfigsResourceResult(
                name=key.name,
                value=text,
                read_only=not is_dynamic(key.name),
                config_source=synonyms[0].source,
                is_sensitive=secret,
                synonyms=synonyms,
                config_type=int(ConfigType[key.type.name]),
                documentation=key.doc,
            )
        )
    return sorted(described, key=lambda setting: setting.name)


def _topic_type(value: object) -> ConfigType:
    if isinstance(value, bool):
        return ConfigType.BOOLEAN
    if isinstance(value, int):
        return ConfigType.LONG
    if isinstance(value, float):
        return ConfigType.DOUBLE
    return ConfigType.LIST if isinstance(value, tuple) else ConfigType.STRING


def _text(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, list):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
