"""BrokerSettings: the broker's settings as they are now: those it was started with, and changes since (KIP-226)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import attrs

from kclient.broker.config import BROKER_NAME_OF_TOPIC_SETTING, BrokerConfig
from kclient.broker.metadata.image.configurations import ConfigurationsImage, ResourceType
from kclient.broker.security.listener_config import PREFIX
from kclient.config import Type
from kclient.config.declare import definition_of
from kclient.errors import ConfigError
from kclient.security.tls import server_context

log = logging.getLogger(__name__)

ALL_BROKERS = ""
"""The name of the settings that are for all brokers together."""

_POSITIVE = frozenset({"max.connections", "max.connection.creation.rate"})  # or nobody could undo the change
_NETWORK_THREADS = "num.network.threads"
_THREADS = frozenset(
    {"log.cleaner.threads", "num.io.threads", _NETWORK_THREADS, "num.recovery.threads.per.data.dir"}
)
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
        "producer.id.expiration.ms",
    }
)
"""The settings that can be changed while the broker runs, but for those of single listeners."""

_OF_ANY_LISTENER = frozenset({*_POSITIVE, _NETWORK_THREADS})
CERTIFICATES = frozenset(
    {
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)
"""The settings of keys and certificates, which one broker has for one listener."""


def is_dynamic(name: str) -> bool:
    """True if a setting can be changed while the broker runs."""
    rest = listener_setting(name)
    return name in DYNAMIC_SETTINGS if rest is None else rest in _OF_ANY_LISTENER | CERTIFICATES


def listener_setting(name: str) -> str | None:
    """Return what a setting of one listener is called without that listener's name; None if it is none."""
    return name.removeprefix(PREFIX).partition(".")[2] if name.startswith(PREFIX) else None


def is_secret(name: str) -> bool:
    """True if nobody is to be told the value."""
    key = listener_setting(name) or name
    definition = definition_of(BrokerConfig)
    return key in definition and definition[key].type is Type.PASSWORD


@attrs.frozen
class BrokerSettings:
    """The settings of a broker and where they come from. Immutable."""

    started_with: BrokerConfig
    own: Mapping[str, str] = attrs.field(default=MappingProxyType({}), repr=False)
    """Those that were changed for this broker, which come first."""
    common: Mapping[str, str] = attrs.field(default=MappingProxyType({}), repr=False)
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
    return {key: value for key, value in found.items() if is_dynamic(key)}


def overridden(config: BrokerConfig, changes: Mapping[str, str]) -> BrokerConfig:
    """Return `config` with some dynamic settings changed. Raises ConfigError naming the setting."""
    if not changes:
        return config
    definition = definition_of(BrokerConfig)
    parsed: dict[str, Any] = {}
    of_listeners: dict[str, str] = {}
    for name, value in changes.items():
        rest = listener_setting(name)
        try:
            number = definition[rest or name].parse(value)
        except ConfigError as error:
            # The error has the name without the listener's.
            raise ConfigError(f"{name.removesuffix(rest or name)}{error}", name=name) from None
        if (rest or name) in _POSITIVE and number < 1:
            raise ConfigError(f"{name} must be at least 1, not {number}", name=name)
        if rest is None:
            parsed[_field(name)] = number
        else:
            of_listeners[name] = value
    changed = attrs.evolve(config, **parsed)
    if of_listeners:
        changed = changed.with_listener_settings(of_listeners)
    BrokerConfig.adjust({key.name: getattr(changed, _field(key.name)) for key in definition}, frozenset())
    return changed


def check_change(before: BrokerConfig, after: BrokerConfig) -> None:
    """Raise ConfigError for a change that is too much at once, as with Kafka, or that no connection could be made with:
    a number of threads more than doubled or halved, keys and certificates that cannot be used.
    """
    for name in sorted(_THREADS):
        _check_threads(name, getattr(before, _field(name)), getattr(after, _field(name)))
    for listener in after.listeners_with_security():
        was, wanted = before.listener_config(listener), after.listener_config(listener)
        prefix = f"{PREFIX}{listener.name.lower()}."
        _check_threads(f"{prefix}{_NETWORK_THREADS}", was.num_network_threads, wanted.num_network_threads)
        if listener.uses_tls and any(
            getattr(was, _field(one)) != getattr(wanted, _field(one)) for one in CERTIFICATES
        ):
            server_context(wanted, wanted.ssl_client_auth)


def check_common(names: Iterable[str]) -> None:
    """Raise ConfigError for settings that all brokers together cannot have."""
    single = sorted(name for name in names if listener_setting(name) in CERTIFICATES)
    if single:
        raise ConfigError(
            f"Cannot update these configs at default cluster level, broker id must be specified: {', '.join(single)}",
            name=single[0],
        )


def _check_threads(name: str, current: int, wanted: int) -> None:
    if not current // 2 <= wanted <= current * 2:
        raise ConfigError(
            f"{name} can be halved or doubled at a time: from {current} it cannot become {wanted}", name=name
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
