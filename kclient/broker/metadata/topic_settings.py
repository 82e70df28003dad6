"""Settings of topics and of the broker as clients are shown them: with where each value comes from."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence

import attrs

from kclient.broker.config import BROKER_NAME_OF_TOPIC_SETTING, BrokerConfig
from kclient.broker.log.config import LogConfig
from kclient.config import Password, Type
from kclient.config.declare import definition_of


class ConfigSource(enum.IntEnum):
    """The source of a setting's value, by its number in the protocol."""

    DYNAMIC_TOPIC_CONFIG = 1
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


@attrs.frozen
class Synonym:
    """A value that takes effect if those before it are taken away."""

    name: str
    value: str | None
    source: ConfigSource


@attrs.frozen
class DescribedSetting:
    """One setting."""

    name: str
    value: str | None
    source: ConfigSource
    type: ConfigType
    synonyms: Sequence[Synonym]
    doc: str
    is_sensitive: bool = False


def described_settings(
    config: BrokerConfig, effective: LogConfig, overrides: Mapping[str, str]
) -> list[DescribedSetting]:
    """All settings of a topic with these overrides, in order of their names."""
    defaults = config.log_config().to_topic_configs()
    unset = LogConfig()
    original = unset.to_topic_configs()
    described = []
    for name, value in effective.to_topic_configs().items():
        synonyms = []
        if name in overrides:
            synonyms.append(Synonym(name, value, ConfigSource.DYNAMIC_TOPIC_CONFIG))
        broker_name = BROKER_NAME_OF_TOPIC_SETTING.get(name)
        if broker_name is not None:
            if defaults[name] != original[name]:
                synonyms.append(Synonym(broker_name, defaults[name], ConfigSource.STATIC_BROKER_CONFIG))
            synonyms.append(Synonym(broker_name, original[name], ConfigSource.DEFAULT_CONFIG))
        source = synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
        kind = _topic_type(getattr(unset, name.replace(".", "_")))
        described.append(DescribedSetting(name, value, source, kind, synonyms, LogConfig.doc(name)))
    return described


def described_broker_settings(config: BrokerConfig) -> list[DescribedSetting]:
    """All settings of the broker, in order of their names."""
    described = []
    for key in definition_of(BrokerConfig):
        value = getattr(config, key.name.replace(".", "_"))
        source = ConfigSource.DEFAULT_CONFIG if value == key.default else ConfigSource.STATIC_BROKER_CONFIG
        secret = key.type is Type.PASSWORD or isinstance(value, Password)
        text = None if secret else _text(value)
        kind = ConfigType[key.type.name]
        described.append(
            DescribedSetting(key.name, text, source, kind, [Synonym(key.name, text, source)], key.doc, secret)
        )
    return described


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
