"""BrokerSettings: the broker's settings as they are now: those it was started with, and changes since (KIP-226)."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import attrs

from kclient.broker.config import BROKER_NAME_OF_TOPIC_SETTING, BrokerConfig
from kclient.broker.metadata.image.configurations import ConfigurationsImage, ResourceType
from kclient.config.declare import definition_of
from kclient.errors import ConfigError

log = logging.getLogger(__name__)

ALL_BROKERS = ""
"""The name of the settings that are for all brokers together."""

_POSITIVE = frozenset({"max.connections", "max.connection.creation.rate"})  # or nobody could undo the change
_THREADS = frozenset({"num.io.threads", "log.cleaner.threads"})
_CLEANER = frozenset(
    {
        "log.cleaner.backoff.ms",
        "log.cleaner.dedupe.buffer.size",
        "log.cleaner.io.buffer.load.factor",
        "log.cleaner.io.max.bytes.per.second",
    }
)
DYNAMIC_SETTINGS = frozenset(
    {
        *BROKER_NAME_OF_TOPIC_SETTING.values(),
        "max.connections.per.ip",
        "max.connections.per.ip.overrides",
        *_POSITIVE,
        *_THREADS,
        *_CLEANER,
    }
)
"""The settings that can be changed while the broker runs."""


@attrs.frozen
class BrokerSettings:
    """The settings of a broker and where they come from. Immutable."""

    started_with: BrokerConfig
    own: Mapping[str, str] = MappingProxyType({})
    """Those that were changed for this broker, which come first."""
    common: Mapping[str, str] = MappingProxyType({})
    """Those that were changed for all brokers."""
    current: BrokerConfig = attrs.field(init=False)
    """The settings that are in force."""

    @current.default
    def _in_force(self) -> BrokerConfig:
        return overridden(self.started_with, {**self.common, **self.own})

    @classmethod
    def of(cls, started_with: BrokerConfig, configs: ConfigurationsImage) -> BrokerSettings:
        """Return the settings with the changes that the metadata has. Those that cannot be take no effect."""
        own, common = (
            dict(_usable(started_with, dynamic_settings(configs, name)))
            for name in (str(started_with.node_id), ALL_BROKERS)
        )
        try:
            return cls(started_with, own, common)
        except ConfigError as error:
            log.error("The settings in the metadata have no effect, they do not go together: %s", error)
            return cls(started_with)


def dynamic_settings(configs: ConfigurationsImage, name: str) -> dict[str, str]:
    """Return the settings that were changed for a broker, or for all."""
    found = configs.of(ResourceType.BROKER, name)
    return {key: value for key, value in found.items() if key in DYNAMIC_SETTINGS}


def overridden(config: BrokerConfig, changes: Mapping[str, str]) -> BrokerConfig:
    """Return `config` with some dynamic settings changed. Raises ConfigError naming the setting."""
    if not changes:
        return config
    parsed: dict[str, Any] = {}
    for name, value in changes.items():
        parsed[_field(name)] = number = definition_of(BrokerConfig)[name].parse(value)
        if name in _POSITIVE and number < 1:
            raise ConfigError(f"{name} must be at least 1, not {number}", name=name)
    changed = attrs.evolve(config, **parsed)
    definition = definition_of(BrokerConfig)
    BrokerConfig.adjust({key.name: getattr(changed, _field(key.name)) for key in definition}, frozenset())
    return changed


def check_threads(before: BrokerConfig, after: BrokerConfig) -> None:
    """Raise ConfigError if a number of threads is more than doubled or halved at once, as with Kafka."""
    for name in _THREADS:
        current, wanted = getattr(before, _field(name)), getattr(after, _field(name))
        if not current // 2 <= wanted <= current * 2:
            raise ConfigError(
                f"{name} can be halved or doubled at a time: from {current} it cannot become {wanted}",
                name=name,
            )


def _field(name: str) -> str:
    return name.replace(".", "_")


def _usable(config: BrokerConfig, changes: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, value in changes.items():
        try:
            overridden(config, {name: value})
        except ConfigError as error:
            log.error("A setting in the metadata has no effect: %s", error)
        else:
            yield name, value
