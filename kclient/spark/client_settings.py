"""The options that begin with `kafka.`: settings of kclient's clients, checked before any client is made."""

from __future__ import annotations

from collections.abc import Mapping

from kclient.errors import ConfigError
from kclient.spark.option_names import Use
from kclient.spark.redaction import ClientSettings
from kclient.spark.setting_names import KAFKA, config_class, sort_names

_SERVERS = "bootstrap.servers"
_PROVIDERS = "config.providers"
_WITH_PASSWORD = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_FIXED_IN_SOURCE: Mapping[str, str] = {
    "auto.offset.reset": "use the option startingOffsets",
    "key.deserializer": "keys are read as binary; cast or decode the column",
    "value.deserializer": "values are read as binary; cast or decode the column",
    "enable.auto.commit": "Spark keeps the offsets in its checkpoint; commitGroupId also commits them",
    "interceptor.classes": "interceptors are Python objects, which an option cannot name",
}
_FIXED_IN_SINK: Mapping[str, str] = {
    "key.serializer": "the key column is string or binary",
    "value.serializer": "the value column is string or binary",
    "interceptor.classes": "interceptors are Python objects, which an option cannot name",
    "transactional.id": "the sink makes those of its tasks, with the option kclient.delivery=exactly_once",
}

_READER: Mapping[str, str] = {
    "auto.offset.reset": "none",
    "enable.auto.commit": "false",
    "allow.auto.create.topics": "false",
}
_READER_DEFAULTS: Mapping[str, str] = {
    # A task reads one partition at a time, so that the limit for one can be what others divide among many.
    "max.partition.fetch.bytes": str(4 * 1024 * 1024),
    # A range ends where there may be nothing yet. The fetch that is sent there holds up that of the next task, which a
    # worker that has many small ones asks for a moment later.
    "fetch.max.wait.ms": "1",
}
PROBE_WAIT_MS = 250
"""The time that the broker holds the fetch of a query that waits for records."""

_PROBE: Mapping[str, str] = {
    # As little as a broker can send: one batch.
    "max.partition.fetch.bytes": "1",
    "fetch.max.bytes": "1",
    "fetch.max.wait.ms": str(PROBE_WAIT_MS),
}


def checked_settings(options: Mapping[str, str], use: Use | None) -> ClientSettings:
    """The client's settings among the options, without their prefix. Raises ConfigError."""
    settings = ClientSettings(
        (name.lower().removeprefix(KAFKA), value)
        for name, value in options.items()
        if name.lower().startswith(KAFKA)
    )
    servers = settings.get(_SERVERS, "").strip()
    if not servers:
        raise ConfigError(
            "kafka.bootstrap.servers is not set; give it as host:port,host:port.",
            name=KAFKA + _SERVERS,
        )
    if "embedded://" in servers:
        raise ConfigError(
            f"kafka.bootstrap.servers: {servers!r} is a broker inside one process, and Spark's executors are others. "
            "Start kclient.broker.EmbeddedKafka() in your program and give its .bootstrap_servers.",
            name=KAFKA + _SERVERS,
        )
    if use is None:
        return settings
    settings = ClientSettings((name, settings[name]) for name in sort_names(settings, use).taken)
    for name, reason in (_FIXED_IN_SOURCE if use.reads else _FIXED_IN_SINK).items():
        if name in settings:
            raise ConfigError(f"{KAFKA}{name} cannot be set: {reason}.", name=KAFKA + name)
    _check_credentials(settings)
    told = _without_variables(settings)
    try:
        config_class(reads=use.reads).parse(reader_settings(told) if use.reads else told)
    except ConfigError as error:
        raise ConfigError(f"Options {KAFKA}*: {error}", name=error.name) from None
    return settings


def _check_credentials(settings: Mapping[str, str]) -> None:
    """Refuse SASL without credentials where the built-in connector may have others than those of the options."""
    protocol = settings.get("security.protocol", "").strip().upper()
    if not protocol.startswith("SASL_") or "sasl.jaas.config" in settings:
        return
    mechanism = settings.get("sasl.mechanism", "GSSAPI").strip()
    # Kerberos' tickets may be those of the user that the process runs as.
    if mechanism in _WITH_PASSWORD or (
        mechanism == "GSSAPI" and "sasl.kerberos.service.name" not in settings
    ):
        raise ConfigError(
            f"kafka.sasl.jaas.config is not set, and kafka.security.protocol={protocol} with kafka.sasl.mechanism "
            f"{mechanism} needs it. Delegation tokens (spark.kafka.clusters.*) and a file for the virtual machine "
            "(java.security.auth.login.config) are for Spark's own connector, and not used here.",
            name="kafka.sasl.jaas.config",
        )


def _without_variables(settings: Mapping[str, str]) -> dict[str, str]:
    """Leave out what is looked up elsewhere: it is there where clients are made, and may be nowhere else."""
    if _PROVIDERS not in settings:
        return dict(settings)
    return {
        name: value
        for name, value in settings.items()
        if name == _SERVERS or ("${" not in value and not name.startswith(_PROVIDERS))
    }


def transaction_timeout_ms(settings: Mapping[str, str]) -> int:
    """Return transaction.timeout.ms. Raises ConfigError if a producer with these settings can have no transactions."""
    from kclient.producer import ProducerConfig

    try:
        config = ProducerConfig.parse(_without_variables(settings), transactional_id="checked")
        return config.transaction_timeout_ms
    except ConfigError as error:
        raise ConfigError(f"kclient.delivery=exactly_once: {error}", name=error.name) from None


def reader_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings of the consumers that read records, on the executors."""
    return {**_READER_DEFAULTS, **settings, **_READER}


def probe_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings of the driver's consumer, which only learns that there is something to read."""
    return {**settings, **_READER, **_PROBE}


def sample_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings of the driver's consumer that looks at the first records of each partition."""
    return {**settings, **_READER, "max.partition.fetch.bytes": "65536"}


def admin_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Those settings that an admin client has as well."""
    from kclient.admin.config import AdminConfig
    from kclient.config import definition_of

    known = definition_of(AdminConfig)
    # The settings of a provider are those of whatever it is asked for.
    return {name: value for name, value in settings.items() if name in known or name.startswith(_PROVIDERS)}


def committer_settings(settings: Mapping[str, str], group_id: str) -> dict[str, str]:
    """Settings of the consumer that commits processed offsets for `group_id`, without being a member."""
    return {**settings, **_READER, "group.id": group_id}
