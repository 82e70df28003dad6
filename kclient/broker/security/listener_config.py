"""ListenerConfig: the settings by which one listener knows its clients, under Kafka's names of server.properties.

Each may be given for all listeners, or for one: `listener.name.<listener>.ssl.keystore.location`. The options of a
SASL mechanism always are for one: `listener.name.<listener>.<mechanism>.sasl.jaas.config`.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from kclient.config.config_def import HIGH, LOW, MEDIUM
from kclient.config.declare import definition_of, integer, list_, long, string
from kclient.config.ssl_configs import SslConfig
from kclient.config.validators import at_least, one_of
from kclient.config.values import Password
from kclient.errors import ConfigError

PREFIX = "listener.name."
_JAAS = ".sasl.jaas.config"
_NEVER_MS = 0
_INT_MAX = (1 << 31) - 1


@attrs.frozen(kw_only=True)
class ListenerConfig(SslConfig):
    """Settings of one listener. Immutable."""

    ssl_client_auth: str = string(
        "none",
        MEDIUM,
        "Whether clients have to show a certificate on listeners with TLS: required, requested or none.",
        one_of("required", "requested", "none"),
    )
    ssl_principal_mapping_rules: str = string(
        "DEFAULT",
        LOW,
        "Rules that make the name of a user out of that of a certificate, the first that fits: "
        "RULE:PATTERN/REPLACEMENT/[LU], DEFAULT.",
    )
    sasl_enabled_mechanisms: list[str] = list_(
        [],
        HIGH,
        "The SASL mechanisms of listeners with SASL: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER.",
    )
    connections_max_reauth_ms: int = long(
        _NEVER_MS,
        MEDIUM,
        "Time after which clients of listeners with SASL have to prove again who they are (KIP-368); 0 for never.",
        at_least(0),
    )
    max_connections: int = integer(
        _INT_MAX,
        MEDIUM,
        "Most connections at a time, of the broker and of a listener; more wait to be accepted.",
        at_least(0),
    )
    max_connection_creation_rate: int = integer(
        _INT_MAX,
        MEDIUM,
        "Most new connections a second, of the broker and of a listener; more wait to be accepted (KIP-612).",
        at_least(0),
    )
    num_network_threads: int = integer(
        1, HIGH, "Threads that read requests and write responses, for each listener.", at_least(1)
    )
    connection_failed_authentication_delay_ms: int = integer(
        100, LOW, "Time that a client waits for hearing that it was refused.", at_least(0)
    )


@attrs.frozen
class ListenerOverrides:
    """The settings that were given for one listener alone. Immutable."""

    settings: Mapping[str, object] = attrs.field(factory=dict, repr=False)
    jaas: Mapping[str, Password] = attrs.field(factory=dict)
    """The options of SASL mechanisms, by their names in lower case."""


def split_off(given: Mapping[str, object]) -> tuple[dict[str, object], dict[str, object]]:
    """Return the settings that are for all listeners, and those that are for one."""
    common: dict[str, object] = {}
    for_listeners: dict[str, object] = {}
    for name, value in given.items():
        (for_listeners if name.startswith(PREFIX) else common)[name] = value
    return common, for_listeners


def listener_overrides(given: Mapping[str, object]) -> dict[str, ListenerOverrides]:
    """Return the settings of each listener, by its name in lower case.

    Raises ConfigError for a setting that a listener cannot have.
    """
    settings: dict[str, dict[str, object]] = {}
    jaas: dict[str, dict[str, Password]] = {}
    for name, value in given.items():
        listener, _, rest = name.removeprefix(PREFIX).partition(".")
        listener = listener.lower()
        if rest.endswith(_JAAS):
            secret = value if isinstance(value, Password) else Password(str(value))
            jaas.setdefault(listener, {})[rest.removesuffix(_JAAS)] = secret
        elif rest in definition_of(ListenerConfig):
            settings.setdefault(listener, {})[rest] = value
        else:
            raise ConfigError(f"{name}: {rest!r} cannot be set for a listener alone", name=name)
    return {
        listener: ListenerOverrides(settings.get(listener, {}), jaas.get(listener, {}))
        for listener in {*settings, *jaas}
    }


def listener_config(common: ListenerConfig, overrides: ListenerOverrides) -> ListenerConfig:
    """Return the settings of a listener: its own, and for the rest those of all. Raises ConfigError."""
    own = ListenerConfig.parse(overrides.settings)
    given = {name.replace(".", "_") for name in overrides.settings}
    fields = attrs.fields_dict(ListenerConfig)
    return ListenerConfig(**{name: getattr(own if name in given else common, name) for name in fields})
