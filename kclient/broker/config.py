"""BrokerConfig: the broker's settings, under Kafka's names of server.properties where Kafka has the setting."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, ClassVar

import attrs

from kclient.broker.log.config import LogConfig
from kclient.broker.network.socket_server import Endpoint
from kclient.config import REQUIRED, Config, Importance, Type, setting
from kclient.config.validators import at_least, between, one_of
from kclient.errors import ConfigError, InvalidConfigurationError

_HIGH, _MEDIUM, _LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
_INT_MAX = (1 << 31) - 1
_LONG_MAX = (1 << 63) - 1
_MINUTE_MS = 60_000
_HOUR_MS = 60 * _MINUTE_MS
_LISTENER = re.compile(r"PLAINTEXT://(?:\[(?P<v6>[0-9a-fA-F:.]+)\]|(?P<host>[^:/\[\]]*)):(?P<port>\d{1,5})")


@attrs.frozen(kw_only=True)
class BrokerConfig(Config):
    """All settings of a broker. Made by `parse`, which raises ConfigError naming the setting. Immutable."""

    client: ClassVar[str] = "broker"

    # Identity and place
    node_id: int = setting("node.id", Type.INT, 1, _HIGH, "Number of this broker.", validator=at_least(0))
    log_dirs: list[str] = setting(
        "log.dirs", Type.LIST, REQUIRED, _HIGH, "Directories that hold the partitions.",
        missing="log.dirs is not set: name the directory in which the broker keeps its data.",
    )  # fmt: skip
    listeners: list[str] = setting(
        "listeners", Type.LIST, ["PLAINTEXT://127.0.0.1:9092"], _HIGH,
        "Addresses to listen on, as PLAINTEXT://HOST:PORT; port 0 takes a free one, no host all interfaces.",
    )  # fmt: skip
    advertised_listeners: list[str] = setting(
        "advertised.listeners", Type.LIST, [], _HIGH,
        "Addresses that clients are told to connect to, one for each of listeners; empty means the same ones.",
    )  # fmt: skip

    # Network
    num_network_threads: int = setting(
        "num.network.threads", Type.INT, 1, _HIGH, "Threads that read requests and write responses.",
        validator=at_least(1),
    )  # fmt: skip
    num_io_threads: int = setting(
        "num.io.threads", Type.INT, 4, _HIGH, "Threads that handle requests.", validator=at_least(1)
    )
    queued_max_requests: int = setting(
        "queued.max.requests", Type.INT, 500, _HIGH, "Requests that may wait for a thread to handle them.",
        validator=at_least(1),
    )  # fmt: skip
    queued_max_request_bytes: int = setting(
        "queued.max.request.bytes", Type.LONG, 128 * 1024 * 1024, _MEDIUM,
        "Most memory, in bytes, of requests that are arriving or being handled; above it connections are not read "
        "from, except that one request may always be finished. -1, which is Kafka's default, for no limit.",
        validator=at_least(-1),
    )  # fmt: skip
    socket_request_max_bytes: int = setting(
        "socket.request.max.bytes", Type.INT, 100 * 1024 * 1024, _HIGH,
        "Largest request; a larger one ends its connection.", validator=at_least(1),
    )  # fmt: skip
    socket_send_buffer_bytes: int = setting(
        "socket.send.buffer.bytes", Type.INT, -1, _HIGH, "SO_SNDBUF of connections; -1 leaves it to the system.",
        validator=at_least(-1),
    )  # fmt: skip
    socket_receive_buffer_bytes: int = setting(
        "socket.receive.buffer.bytes", Type.INT, -1, _HIGH, "SO_RCVBUF of connections; -1 leaves it to the system.",
        validator=at_least(-1),
    )  # fmt: skip
    socket_listen_backlog_size: int = setting(
        "socket.listen.backlog.size",
        Type.INT,
        50,
        _MEDIUM,
        "Connections that may wait to be accepted.",
        validator=at_least(1),
    )
    max_connections: int = setting(
        "max.connections", Type.INT, _INT_MAX, _MEDIUM, "Most connections at a time.", validator=at_least(0)
    )
    max_connections_per_ip: int = setting(
        "max.connections.per.ip",
        Type.INT,
        _INT_MAX,
        _MEDIUM,
        "Most connections from one address.",
        validator=at_least(0),
    )
    connections_max_idle_ms: int = setting(
        "connections.max.idle.ms", Type.LONG, 10 * _MINUTE_MS, _MEDIUM,
        "Idle time after which a connection is closed.",
    )  # fmt: skip

    # Topics
    auto_create_topics_enable: bool = setting(
        "auto.create.topics.enable",
        Type.BOOLEAN,
        True,
        _HIGH,
        "Whether a topic that clients ask for is created.",
    )
    delete_topic_enable: bool = setting(
        "delete.topic.enable", Type.BOOLEAN, True, _HIGH, "Whether topics may be deleted."
    )
    num_partitions: int = setting(
        "num.partitions",
        Type.INT,
        1,
        _MEDIUM,
        "Partitions of a topic whose creator does not say.",
        validator=at_least(1),
    )
    default_replication_factor: int = setting(
        "default.replication.factor", Type.INT, 1, _MEDIUM, "Replicas of a topic whose creator does not say.",
        validator=between(1, 1),
    )  # fmt: skip

    # Logs: the defaults of topics
    message_max_bytes: int = setting(
        "message.max.bytes",
        Type.INT,
        1048588,
        _HIGH,
        "Largest record batch that is accepted.",
        validator=at_least(0),
    )
    compression_type: str = setting(
        "compression.type", Type.STRING, "producer", _HIGH, "Codec in which batches are stored."
    )
    compression_gzip_level: int = setting("compression.gzip.level", Type.INT, -1, _MEDIUM, "Level for gzip.")
    compression_lz4_level: int = setting("compression.lz4.level", Type.INT, 9, _MEDIUM, "Level for lz4.")
    compression_zstd_level: int = setting("compression.zstd.level", Type.INT, 3, _MEDIUM, "Level for zstd.")
    min_insync_replicas: int = setting(
        "min.insync.replicas", Type.INT, 1, _HIGH, "Replicas that acks=all waits for.", validator=at_least(1)
    )
    log_segment_bytes: int = setting(
        "log.segment.bytes",
        Type.INT,
        1 << 30,
        _HIGH,
        "Size at which a segment is closed.",
        validator=at_least(14),
    )
    log_roll_ms: int | None = setting(
        "log.roll.ms", Type.LONG, None, _HIGH, "Age at which a segment is closed."
    )
    log_roll_hours: int = setting(
        "log.roll.hours",
        Type.INT,
        168,
        _HIGH,
        "The same in hours, if log.roll.ms is not set.",
        validator=at_least(1),
    )
    log_roll_jitter_ms: int = setting(
        "log.roll.jitter.ms", Type.LONG, 0, _HIGH, "Random part taken off log.roll.ms.", validator=at_least(0)
    )
    log_index_interval_bytes: int = setting(
        "log.index.interval.bytes",
        Type.INT,
        4096,
        _MEDIUM,
        "Bytes between two index entries.",
        validator=at_least(0),
    )
    log_index_size_max_bytes: int = setting(
        "log.index.size.max.bytes",
        Type.INT,
        10 << 20,
        _MEDIUM,
        "Largest index of a segment.",
        validator=at_least(4),
    )
    log_retention_ms: int | None = setting(
        "log.retention.ms", Type.LONG, None, _HIGH, "Age at which records go; -1 for never."
    )
    log_retention_minutes: int | None = setting(
        "log.retention.minutes", Type.INT, None, _HIGH, "The same in minutes, if log.retention.ms is not set."
    )
    log_retention_hours: int = setting(
        "log.retention.hours", Type.INT, 168, _HIGH, "The same in hours, if neither of the two is set."
    )
    log_retention_bytes: int = setting(
        "log.retention.bytes",
        Type.LONG,
        -1,
        _HIGH,
        "Size of a partition above which old segments go; -1 for any.",
    )
    log_retention_check_interval_ms: int = setting(
        "log.retention.check.interval.ms", Type.LONG, 5 * _MINUTE_MS, _MEDIUM, "Time between looks for old segments.",
        validator=at_least(1),
    )  # fmt: skip
    log_cleanup_policy: list[str] = setting(
        "log.cleanup.policy", Type.LIST, ["delete"], _MEDIUM, "delete, compact or both."
    )
    log_segment_delete_delay_ms: int = setting(
        "log.segment.delete.delay.ms", Type.LONG, _MINUTE_MS, _LOW,
        "Time until files of a deleted segment are removed.",
        validator=at_least(0),
    )  # fmt: skip
    log_flush_interval_messages: int = setting(
        "log.flush.interval.messages", Type.LONG, _LONG_MAX, _HIGH, "Records after which a log is forced to disk.",
        validator=at_least(1),
    )  # fmt: skip
    log_flush_interval_ms: int | None = setting(
        "log.flush.interval.ms", Type.LONG, None, _HIGH, "Time after which new records are forced to disk."
    )
    log_flush_scheduler_interval_ms: int = setting(
        "log.flush.scheduler.interval.ms", Type.LONG, 3000, _LOW, "Time between looks for logs to force to disk.",
        validator=at_least(1),
    )  # fmt: skip
    log_flush_offset_checkpoint_interval_ms: int = setting(
        "log.flush.offset.checkpoint.interval.ms", Type.INT, _MINUTE_MS, _HIGH, "Time between recovery checkpoints.",
        validator=at_least(1),
    )  # fmt: skip
    log_flush_start_offset_checkpoint_interval_ms: int = setting(
        "log.flush.start.offset.checkpoint.interval.ms", Type.INT, _MINUTE_MS, _HIGH,
        "Time between checkpoints of where logs begin.", validator=at_least(1),
    )  # fmt: skip
    log_message_timestamp_type: str = setting(
        "log.message.timestamp.type", Type.STRING, "CreateTime", _MEDIUM, "CreateTime or LogAppendTime.",
        validator=one_of("CreateTime", "LogAppendTime"),
    )  # fmt: skip
    log_message_timestamp_before_max_ms: int = setting(
        "log.message.timestamp.before.max.ms", Type.LONG, _LONG_MAX, _MEDIUM, "How old a record's timestamp may be.",
        validator=at_least(0),
    )  # fmt: skip
    log_message_timestamp_after_max_ms: int = setting(
        "log.message.timestamp.after.max.ms", Type.LONG, _HOUR_MS, _MEDIUM,
        "How far ahead a record's timestamp may be.",
        validator=at_least(0),
    )  # fmt: skip
    log_preallocate: bool = setting(
        "log.preallocate", Type.BOOLEAN, False, _MEDIUM, "Whether segments get their size at once."
    )
    kclient_ack_policy: str = setting(
        "kclient.ack.policy", Type.STRING, "none", _HIGH,
        "What must be on disk before records are acknowledged: none (the system's cache is enough, as in Kafka), "
        "batch (they are forced to disk together with others) or always (one by one).",
        validator=one_of("none", "batch", "always"),
    )  # fmt: skip

    kclient_adopt_topics: bool = setting(
        "kclient.adopt.topics", Type.BOOLEAN, False, _MEDIUM,
        "Whether topics are taken over that are found in log.dirs but not in the broker's topics.journal, such as "
        "those that Apache Kafka wrote. Nothing is deleted from them until their retention.ms or retention.bytes "
        "is set. Without this the broker does not start on such a directory, and leaves it as it is.",
    )  # fmt: skip

    # Fetching
    fetch_max_bytes: int = setting(
        "fetch.max.bytes",
        Type.INT,
        55 << 20,
        _MEDIUM,
        "Most bytes of a fetch response.",
        validator=at_least(1024),
    )
    max_incremental_fetch_session_cache_slots: int = setting(
        "max.incremental.fetch.session.cache.slots", Type.INT, 1000, _MEDIUM, "Most incremental fetch sessions.",
        validator=at_least(0),
    )  # fmt: skip

    # Groups and their offsets
    group_min_session_timeout_ms: int = setting(
        "group.min.session.timeout.ms",
        Type.INT,
        6000,
        _MEDIUM,
        "Shortest session timeout of members.",
        validator=at_least(1),
    )
    group_max_session_timeout_ms: int = setting(
        "group.max.session.timeout.ms", Type.INT, 30 * _MINUTE_MS, _MEDIUM, "Longest session timeout of members.",
        validator=at_least(1),
    )  # fmt: skip
    group_initial_rebalance_delay_ms: int = setting(
        "group.initial.rebalance.delay.ms", Type.INT, 3000, _MEDIUM, "How long a new group waits for more members.",
        validator=at_least(0),
    )  # fmt: skip
    group_max_size: int = setting(
        "group.max.size", Type.INT, _INT_MAX, _MEDIUM, "Most members of a group.", validator=at_least(1)
    )
    offsets_topic_num_partitions: int = setting(
        "offsets.topic.num.partitions", Type.INT, 50, _HIGH, "Partitions of __consumer_offsets when it is created.",
        validator=at_least(1),
    )  # fmt: skip
    offsets_topic_replication_factor: int = setting(
        "offsets.topic.replication.factor",
        Type.SHORT,
        1,
        _HIGH,
        "Replicas of __consumer_offsets.",
        validator=between(1, 1),
    )
    offset_metadata_max_bytes: int = setting(
        "offset.metadata.max.bytes",
        Type.INT,
        4096,
        _HIGH,
        "Longest note with a committed offset.",
        validator=at_least(0),
    )
    offsets_retention_minutes: int = setting(
        "offsets.retention.minutes", Type.INT, 7 * 24 * 60, _HIGH,
        "How long the offsets of a group without members stay.",
        validator=at_least(1),
    )  # fmt: skip
    offsets_retention_check_interval_ms: int = setting(
        "offsets.retention.check.interval.ms", Type.LONG, 10 * _MINUTE_MS, _HIGH,
        "Time between looks for old offsets.",
        validator=at_least(1),
    )  # fmt: skip

    @classmethod
    def adjust(cls, values: dict[str, Any], given: frozenset[str]) -> None:
        del given  # no default depends on another setting
        if not values["log.dirs"]:
            raise ConfigError("log.dirs must name at least one directory", name="log.dirs")
        if not values["listeners"]:
            raise ConfigError("listeners must name at least one address", name="listeners")
        for name in ("listeners", "advertised.listeners"):
            for listener in values[name]:
                parse_listener(name, listener)
        if values["advertised.listeners"] and len(values["advertised.listeners"]) != len(values["listeners"]):
            raise ConfigError(
                "advertised.listeners must be empty or have one entry for each of listeners",
                name="advertised.listeners",
            )
        if values["group.min.session.timeout.ms"] > values["group.max.session.timeout.ms"]:
            raise ConfigError(
                "group.min.session.timeout.ms is greater than group.max.session.timeout.ms",
                name="group.min.session.timeout.ms",
            )
        log_defaults(values)

    def data_directories(self) -> list[Path]:
        """The directories of `log.dirs`."""
        return [Path(directory).expanduser() for directory in self.log_dirs]

    def endpoints(self) -> list[Endpoint]:
        """The addresses of `listeners`."""
        return [parse_listener("listeners", listener) for listener in self.listeners]

    def advertised_endpoints(self) -> list[Endpoint]:
        """The addresses of `advertised.listeners`."""
        return [parse_listener("advertised.listeners", listener) for listener in self.advertised_listeners]

    def log_config(self) -> LogConfig:
        """The settings of a topic that has none of its own."""
        values = {name: getattr(self, name.replace(".", "_")) for name in _LOG_SETTINGS}
        return log_defaults(values)


_LOG_SETTINGS = {
    "compression.gzip.level": "compression.gzip.level",
    "compression.lz4.level": "compression.lz4.level",
    "compression.type": "compression.type",
    "compression.zstd.level": "compression.zstd.level",
    "log.cleanup.policy": "cleanup.policy",
    "log.flush.interval.messages": "flush.messages",
    "log.flush.interval.ms": "flush.ms",
    "log.index.interval.bytes": "index.interval.bytes",
    "log.index.size.max.bytes": "segment.index.bytes",
    "log.message.timestamp.after.max.ms": "message.timestamp.after.max.ms",
    "log.message.timestamp.before.max.ms": "message.timestamp.before.max.ms",
    "log.message.timestamp.type": "message.timestamp.type",
    "log.preallocate": "preallocate",
    "log.retention.bytes": "retention.bytes",
    "log.retention.hours": "retention.ms",
    "log.retention.minutes": "retention.ms",
    "log.retention.ms": "retention.ms",
    "log.roll.hours": "segment.ms",
    "log.roll.jitter.ms": "segment.jitter.ms",
    "log.roll.ms": "segment.ms",
    "log.segment.bytes": "segment.bytes",
    "log.segment.delete.delay.ms": "file.delete.delay.ms",
    "message.max.bytes": "max.message.bytes",
    "min.insync.replicas": "min.insync.replicas",
}
"""The broker's settings that are defaults of topics, and what topics call them. Of several for one, the finer
unit comes later and wins if it is set."""

_UNIT_MS = {"log.retention.hours": _HOUR_MS, "log.retention.minutes": _MINUTE_MS, "log.roll.hours": _HOUR_MS}

BROKER_NAME_OF_TOPIC_SETTING = {topic_name: name for name, topic_name in _LOG_SETTINGS.items()}
"""The broker's name, in the finest unit, of each default that a topic can override."""


def log_defaults(values: dict[str, Any]) -> LogConfig:
    """The defaults of topics out of the broker's settings. Raises ConfigError naming the setting."""
    configs: dict[str, str | None] = {}
    for name, topic_name in _LOG_SETTINGS.items():
        value = values[name]
        if value is None:
            continue
        if name in _UNIT_MS and value >= 0:
            value *= _UNIT_MS[name]
        configs[topic_name] = ",".join(value) if isinstance(value, list) else str(value)
    try:
        return LogConfig.from_topic_configs(configs)
    except InvalidConfigurationError as error:
        topic_name = next((known for known in BROKER_NAME_OF_TOPIC_SETTING if known in str(error)), "")
        name = BROKER_NAME_OF_TOPIC_SETTING.get(topic_name, topic_name)
        raise ConfigError(f"{name}: {error}", name=name) from None


def parse_listener(name: str, listener: str) -> Endpoint:
    """The address of `PLAINTEXT://HOST:PORT`. Raises ConfigError naming the setting `name`."""
    match = _LISTENER.fullmatch(listener)
    if match is None or int(match["port"]) > 65535:
        raise ConfigError(f"{name}: {listener!r} is not of the form PLAINTEXT://HOST:PORT", name=name)
    return Endpoint(match["v6"] or match["host"] or "", int(match["port"]))
