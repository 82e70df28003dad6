"""Settings that the producer, the consumer and the admin client share."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import attrs

from kclient.config.config_def import HIGH, JVM, LATER, LOW, MEDIUM, REQUIRED
from kclient.config.declare import boolean, definition_of, integer, list_, long, password, string
from kclient.config.sasl_configs import SaslConfig
from kclient.config.validators import NoDuplicates, at_least, one_of
from kclient.config.values import Password
from kclient.errors import ConfigError
from kclient.utils.log_context import LogContext, shared_logger

_log = shared_logger(__name__)

_numbers: dict[str, Iterator[int]] = {}
"""For each role, the numbers of the clients that have no client.id."""

NO_BOOTSTRAP_SERVERS = (
    "bootstrap.servers is not set: name one or more brokers as host:port, or use embedded://NAME for a "
    "broker inside this process."
)


@attrs.frozen(kw_only=True)
class ClientConfig(SaslConfig):
    """Settings by which a client finds brokers, connects, waits and retries."""

    _identity: ClassVar[Mapping[str, str]] = {"client.id": "clientId"}
    """The settings that say which client it is, and what they are called in its log lines, as in Java's."""

    bootstrap_servers: list[str] = list_(
        REQUIRED,
        HIGH,
        "The brokers to ask first, as host:port; embedded://NAME is a broker inside this process.",
        NoDuplicates(),
        missing=NO_BOOTSTRAP_SERVERS,
    )
    bootstrap_resolve_timeout_ms: int = long(
        0,
        HIGH,
        "How long the names of bootstrap servers may stay unresolved; 0 is one try, when the client is made.",
        at_least(0),
        support=LATER,
    )
    client_dns_lookup: str = string(
        "use_all_dns_ips",
        MEDIUM,
        "Whether all addresses of a name are tried, or bootstrap names are made canonical names first.",
        one_of("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
    )
    client_id: str = string(
        "", MEDIUM, "The name by which brokers log the client and apply quotas; empty makes one up."
    )
    metadata_max_age_ms: int = long(
        300_000, LOW, "How old the picture of the cluster may become before it is fetched anew.", at_least(0)
    )
    metadata_recovery_strategy: str = string(
        "rebootstrap",
        LOW,
        "What to do when no known broker can be reached: start again from bootstrap.servers, or nothing.",
        one_of("rebootstrap", "none", ignore_case=True),
    )
    metadata_recovery_rebootstrap_trigger_ms: int = long(
        300_000,
        LOW,
        "How long metadata may not be had before the client starts again from bootstrap.servers.",
        at_least(0),
    )
    metadata_cluster_check_enable: bool = boolean(
        True,
        LOW,
        "Whether brokers are told which cluster and broker the client means to reach, so that one at another's "
        "address refuses the connection and the client starts again from bootstrap.servers (KIP-1242).",
    )
    send_buffer_bytes: int = integer(
        -1,
        MEDIUM,
        "The size of a socket's send buffer; -1 leaves it to the system, which lets it grow as needed.",
        at_least(-1),
    )
    receive_buffer_bytes: int = integer(
        -1,
        MEDIUM,
        "The size of a socket's receive buffer; -1 leaves it to the system, which lets it grow as needed.",
        at_least(-1),
    )
    reconnect_backoff_ms: int = long(
        50,
        LOW,
        "The wait before the first new connection to a broker; it doubles with every failure.",
        at_least(0),
    )
    reconnect_backoff_max_ms: int = long(
        1000, LOW, "The longest wait between connections to a broker.", at_least(0)
    )
    retry_backoff_ms: int = long(
        100,
        LOW,
        "The wait before a failed request is sent again; it doubles with every failure.",
        at_least(0),
    )
    retry_backoff_max_ms: int = long(
        1000, LOW, "The longest wait before a failed request is sent again.", at_least(0)
    )
    request_timeout_ms: int = integer(
        30_000,
        MEDIUM,
        "How long to wait for an answer before the connection is given up and the request tried again.",
        at_least(0),
    )
    socket_connection_setup_timeout_ms: int = long(
        10_000,
        MEDIUM,
        "How long setting up a connection may take at first; it doubles with every failure.",
        at_least(0),
    )
    socket_connection_setup_timeout_max_ms: int = long(
        30_000, MEDIUM, "How long setting up a connection may take at most.", at_least(0)
    )
    connections_max_idle_ms: int = long(
        540_000,
        MEDIUM,
        "How long a connection may be unused before it is closed; -1 is for ever.",
        at_least(-1),
    )
    kclient_receive_max_bytes: int = integer(
        104_857_600,
        LOW,
        "The largest answer the client takes from a broker; a larger one closes the connection.",
        at_least(1024),
    )
    kclient_proxy_url: Password | None = password(
        None,
        LOW,
        "The proxy through which brokers are reached, as socks5://user:password@host:port or http://host:port; it "
        "resolves their names.",
    )
    security_protocol: str = string(
        "PLAINTEXT",
        MEDIUM,
        "Whether connections use TLS, SASL or both.",
        one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL", ignore_case=True),
    )
    security_providers: str | None = string(
        None, LOW, "Classes that make Java's security providers.", support=JVM
    )
    enable_metrics_push: bool = boolean(
        True,
        LOW,
        "Whether metrics are pushed to brokers that ask for them (KIP-714).",
    )
    metrics_num_samples: int = integer(2, LOW, "How many windows are kept to compute a metric.", at_least(1))
    metrics_sample_window_ms: int = long(30_000, LOW, "How long one window of a metric is.", at_least(0))
    metrics_recording_level: str = string(
        "INFO", LOW, "How detailed the recorded metrics are.", one_of("INFO", "DEBUG", "TRACE"), support=LATER
    )
    metric_reporters: list[object] = list_(
        [],
        LOW,
        "Objects that are told of metrics as they come and go; Java's JmxReporter stands for none.",
        NoDuplicates(),
        support=LATER,
        off=(["jmx"],),
        java_kind="metrics reporter",
    )
    config_providers: list[object] = list_(
        [],
        LOW,
        "The names of providers that ${provider:path:key} in values is looked up in: env, file and directory, as "
        "Java's, or others, whose config.providers.NAME.class is one of Java's three, or a function that returns the "
        "value of a path and a key.",
        NoDuplicates(),
    )

    def log_context(self) -> LogContext:
        """Return the text with which the client's log lines begin."""
        return self._log_context({name: getattr(self, name.replace(".", "_")) for name in self._identity})

    @classmethod
    def introduce(cls, given: dict[str, object]) -> LogContext:
        """The client by its client.id, which is made up if there is none."""
        definition = definition_of(cls)
        identity = {name: definition[name].parse(given[name]) for name in cls._identity if name in given}
        if not identity.get("client.id"):
            role = cls._role().lower()
            places = [identity.get(name) or "none" for name in cls._identity if name != "client.id"]
            number = next(_numbers.setdefault(role, itertools.count(1)))
            given["client.id"] = identity["client.id"] = "-".join([role, *places, str(number)])
        return cls._log_context(identity)

    @classmethod
    def _log_context(cls, identity: Mapping[str, Any]) -> LogContext:
        known = ", ".join(
            f"{label}={identity[name]}" for name, label in cls._identity.items() if identity.get(name)
        )
        return LogContext(f"[{cls._role()} {known}] ")

    @classmethod
    def _role(cls) -> str:
        return cls.client.title().replace(" ", "")

    @classmethod
    def adjust(cls, values: dict[str, Any], given: frozenset[str]) -> None:
        """The cross-key rules of every client."""
        if not values["bootstrap.servers"]:
            raise ConfigError(NO_BOOTSTRAP_SERVERS, name="bootstrap.servers")
        if values["kclient.proxy.url"] is not None and values["client.dns.lookup"] != "use_all_dns_ips":
            raise ConfigError(
                "client.dns.lookup: with kclient.proxy.url the proxy resolves the names of brokers, so they cannot be "
                "made canonical here; leave it at use_all_dns_ips.",
                name="client.dns.lookup",
            )
        _fit_backoff(values, given, "reconnect.backoff.ms", "reconnect.backoff.max.ms")
        _fit_backoff(values, given, "retry.backoff.ms", "retry.backoff.max.ms")
        _fit_backoff(
            values,
            given,
            "socket.connection.setup.timeout.ms",
            "socket.connection.setup.timeout.max.ms",
        )


def _fit_backoff(values: dict[str, Any], given: frozenset[str], first: str, longest: str) -> None:
    """Make the first wait fit the longest wait.

    A user who sets only the first, above the default of the longest, wants a constant wait (as in Java).
    """
    if values[first] <= values[longest]:
        return
    if longest in given:
        _log.warning("%s is larger than %s: every wait is %s ms.", first, longest, values[longest])
        values[first] = values[longest]
    else:
        values[longest] = values[first]
