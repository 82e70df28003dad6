"""BrokerConfig: the broker's settings, under Kafka's names of server.properties where Kafka has the setting."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import attrs

from kclient.broker.log.config import LogConfig
from kclient.broker.network.connection_quotas import parse_overrides
from kclient.broker.network.listener import Endpoint, Listener, parse_listener, parse_protocol_map
from kclient.broker.security.authorizer_config import AuthorizerName, Principals
from kclient.broker.security.listener_config import (
    PREFIX,
    ListenerConfig,
    ListenerOverrides,
    listener_config,
    listener_overrides,
    split_off,
)
from kclient.config.config_def import HIGH, LOW, MEDIUM, REQUIRED
from kclient.config.declare import (
    ConfigSource,
    boolean,
    config_mapping,
    double,
    integer,
    list_,
    long,
    short,
    string,
)
from kclient.config.validators import at_least, between, one_of
from kclient.config.values import Password
from kclient.errors import ConfigError, InvalidConfigurationError

_INT_MAX = (1 << 31) - 1
_LONG_MAX = (1 << 63) - 1
_MINUTE_MS = 60_000
_HOUR_MS = 60 * _MINUTE_MS


@attrs.frozen(kw_only=True)
class BrokerConfig(ListenerConfig):
    """All settings of a broker. Made by `parse`, which raises ConfigError naming the setting. Immutable.

    Settings of security are those of all listeners; what a listener has for itself is in `overrides`.
    """

    client: ClassVar[str] = "broker"

    # Identity and place
    node_id: int = integer(1, HIGH, "Number of this broker.", at_least(0))
    log_dirs: list[str] = list_(
        REQUIRED,
        HIGH,
        "Directories that hold the partitions.",
        missing="log.dirs is not set: name the directory in which the broker keeps its data.",
    )
    listeners: list[str] = list_(
        ["PLAINTEXT://127.0.0.1:9092"],
        HIGH,
        "Addresses to listen on, as PROTOCOL://HOST:PORT with PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL, or with a "
        "name of listener.security.protocol.map; port 0 takes a free one, no host all interfaces.",
    )
    listener_security_protocol_map: list[str] = list_(
        [], LOW, "Security protocols of listeners with names of their own, as NAME:PROTOCOL."
    )
    advertised_listeners: list[str] = list_(
        [],
        HIGH,
        "Addresses that clients are told to connect to, one for each of listeners; empty means the same ones.",
    )
    inter_broker_listener_name: str = string(
        "PLAINTEXT",
        MEDIUM,
        "The listener of brokers: where there are others, its connections may exceed max.connections, and those of the "
        "others make room.",
    )

    # Access
    authorizer_class_name: str = string(
        "",
        LOW,
        "Empty: everybody may do everything. Otherwise the name of Kafka's authorizer, whose place is taken by one of "
        "kclient that decides alike: clients may do what access rules (ACLs) allow.",
        AuthorizerName(),
    )
    super_users: str = string(
        "",
        LOW,
        "Who may do everything where there is an authorizer, as User:alice;User:bob.",
        Principals(),
    )
    allow_everyone_if_no_acl_found: bool = boolean(
        False, LOW, "Whether everybody may do everything with what no access rule is about."
    )

    # Network
    num_io_threads: int = integer(4, HIGH, "Threads that handle requests.", at_least(1))
    queued_max_requests: int = integer(
        500, HIGH, "Requests that may wait for a thread to handle them.", at_least(1)
    )
    queued_max_request_bytes: int = long(
        128 * 1024 * 1024,
        MEDIUM,
        "Most memory, in bytes, of requests that are arriving or being handled; above it connections are not read "
        "from, except that one request may always be finished. -1, which is Kafka's default, for no limit.",
        at_least(-1),
    )
    socket_request_max_bytes: int = integer(
        100 * 1024 * 1024, HIGH, "Largest request; a larger one ends its connection.", at_least(1)
    )
    socket_send_buffer_bytes: int = integer(
        -1, HIGH, "SO_SNDBUF of connections; -1 leaves it to the system.", at_least(-1)
    )
    socket_receive_buffer_bytes: int = integer(
        -1, HIGH, "SO_RCVBUF of connections; -1 leaves it to the system.", at_least(-1)
    )
    socket_listen_backlog_size: int = integer(
        50, MEDIUM, "Connections that may wait to be accepted.", at_least(1)
    )
    max_connections_per_ip: int = integer(_INT_MAX, MEDIUM, "Most connections from one address.", at_least(0))
    max_connections_per_ip_overrides: list[str] = list_(
        [], MEDIUM, "Other numbers for some addresses or hosts, as HOST:COUNT."
    )
    connections_max_idle_ms: int = long(
        10 * _MINUTE_MS, MEDIUM, "Idle time after which a connection is closed."
    )

    # Topics
    auto_create_topics_enable: bool = boolean(True, HIGH, "Whether a topic that clients ask for is created.")
    delete_topic_enable: bool = boolean(True, HIGH, "Whether topics may be deleted.")
    num_partitions: int = integer(1, MEDIUM, "Partitions of a topic whose creator does not say.", at_least(1))
    default_replication_factor: int = integer(
        1, MEDIUM, "Replicas of a topic whose creator does not say.", between(1, 1)
    )

    # Logs: the defaults of topics
    message_max_bytes: int = integer(1048588, HIGH, "Largest record batch that is accepted.", at_least(0))
    compression_type: str = string("producer", HIGH, "Codec in which batches are stored.")
    compression_gzip_level: int = integer(-1, MEDIUM, "Level for gzip.")
    compression_lz4_level: int = integer(9, MEDIUM, "Level for lz4.")
    compression_zstd_level: int = integer(3, MEDIUM, "Level for zstd.")
    min_insync_replicas: int = integer(1, HIGH, "Replicas that acks=all waits for.", at_least(1))
    log_segment_bytes: int = integer(1 << 30, HIGH, "Size at which a segment is closed.", at_least(14))
    log_roll_ms: int | None = long(None, HIGH, "Age at which a segment is closed.")
    log_roll_hours: int = integer(168, HIGH, "The same in hours, if log.roll.ms is not set.", at_least(1))
    log_roll_jitter_ms: int = long(0, HIGH, "Random part taken off log.roll.ms.", at_least(0))
    log_index_interval_bytes: int = integer(4096, MEDIUM, "Bytes between two index entries.", at_least(0))
    log_index_size_max_bytes: int = integer(10 << 20, MEDIUM, "Largest index of a segment.", at_least(4))
    log_retention_ms: int | None = long(None, HIGH, "Age at which records go; -1 for never.")
    log_retention_minutes: int | None = integer(
        None, HIGH, "The same in minutes, if log.retention.ms is not set."
    )
    log_retention_hours: int = integer(168, HIGH, "The same in hours, if neither of the two is set.")
    log_retention_bytes: int = long(-1, HIGH, "Size of a partition above which old segments go; -1 for any.")
    num_recovery_threads_per_data_dir: int = integer(
        2,
        HIGH,
        "Threads that open the logs of each of log.dirs after an unclean shutdown. They wait for the disk at the same "
        "time, but check what they have read one after another.",
        at_least(1),
    )
    log_retention_check_interval_ms: int = long(
        5 * _MINUTE_MS, MEDIUM, "Time between looks for old segments.", at_least(1)
    )
    log_cleanup_policy: list[str] = list_(["delete"], MEDIUM, "delete, compact or both.")
    log_cleaner_enable: bool = boolean(
        True, MEDIUM, "Whether topics with cleanup.policy=compact are compacted. Deprecated by Kafka."
    )
    log_cleaner_threads: int = integer(1, MEDIUM, "Threads that compact logs.", at_least(1))
    log_cleaner_dedupe_buffer_size: int = long(
        128 * 1024 * 1024,
        MEDIUM,
        "Most memory, in bytes, for the keys that all these threads look at together; it is taken as it is needed.",
    )
    log_cleaner_io_buffer_load_factor: float = double(
        0.9, MEDIUM, "Share of log.cleaner.dedupe.buffer.size that is used.", between(0.01, 1)
    )
    log_cleaner_io_max_bytes_per_second: float = double(
        1.7976931348623157e308, MEDIUM, "Most bytes a second that compaction reads and writes.", at_least(1)
    )
    log_cleaner_backoff_ms: int = long(15_000, MEDIUM, "Time between looks for logs to compact.", at_least(0))
    log_cleaner_min_cleanable_ratio: float = double(
        0.5, MEDIUM, "Share of a log that must be new before it is compacted.", between(0, 1)
    )
    log_cleaner_delete_retention_ms: int = long(
        24 * _HOUR_MS, MEDIUM, "Time for which compaction keeps a deletion marker.", at_least(0)
    )
    log_cleaner_min_compaction_lag_ms: int = long(
        0, MEDIUM, "Age below which a record is never compacted.", at_least(0)
    )
    log_cleaner_max_compaction_lag_ms: int = long(
        _LONG_MAX, MEDIUM, "Age at which a record must be compacted.", at_least(1)
    )
    log_segment_delete_delay_ms: int = long(
        _MINUTE_MS, LOW, "Time until files of a deleted segment are removed.", at_least(0)
    )
    log_flush_interval_messages: int = long(
        _LONG_MAX, HIGH, "Records after which a log is forced to disk.", at_least(1)
    )
    log_flush_interval_ms: int | None = long(None, HIGH, "Time after which new records are forced to disk.")
    log_flush_scheduler_interval_ms: int = long(
        3000, LOW, "Time between looks for logs to force to disk.", at_least(1)
    )
    log_flush_offset_checkpoint_interval_ms: int = integer(
        _MINUTE_MS, HIGH, "Time between recovery checkpoints.", at_least(1)
    )
    log_flush_start_offset_checkpoint_interval_ms: int = integer(
        _MINUTE_MS, HIGH, "Time between checkpoints of where logs begin.", at_least(1)
    )
    replica_high_watermark_checkpoint_interval_ms: int = long(
        5000, HIGH, "Time between checkpoints of the high watermarks.", at_least(1)
    )
    log_message_timestamp_type: str = string(
        "CreateTime", MEDIUM, "CreateTime or LogAppendTime.", one_of("CreateTime", "LogAppendTime")
    )
    log_message_timestamp_before_max_ms: int = long(
        _LONG_MAX, MEDIUM, "How old a record's timestamp may be.", at_least(0)
    )
    log_message_timestamp_after_max_ms: int = long(
        _HOUR_MS, MEDIUM, "How far ahead a record's timestamp may be.", at_least(0)
    )
    log_preallocate: bool = boolean(False, MEDIUM, "Whether a new segment has its full size at once.")
    kclient_ack_policy: str = string(
        "none",
        HIGH,
        "What must be on disk before records are acknowledged: none (the system's cache is enough, as in Kafka), "
        "batch (they are forced to disk together with others) or always (one by one).",
        one_of("none", "batch", "always"),
    )

    # Metadata
    metadata_log_dir: str | None = string(
        None,
        HIGH,
        "Directory that holds the metadata log, in __cluster_metadata-0; the first of log.dirs if it is not set.",
    )
    metadata_log_max_record_bytes_between_snapshots: int = long(
        20 * 1024 * 1024,
        HIGH,
        "Bytes of metadata records after which a snapshot takes their place.",
        at_least(1),
    )
    kclient_adopt_topics: bool = boolean(
        False,
        MEDIUM,
        "Whether topics are taken over that are found in log.dirs but not in the broker's metadata log. Of directories "
        "that Apache Kafka wrote its own metadata log says what the topics are and how they are set, and what there is "
        "of quotas, access rules and passwords. Of topics that no metadata know nothing is deleted until their "
        "retention.ms or retention.bytes is set. Without this the broker does not start on such a directory, and "
        "leaves it as it is.",
    )
    kclient_read_only: bool = boolean(
        False,
        MEDIUM,
        "Whether log.dirs are only read: nothing in them is changed, whoever wrote them, and in whatever state. "
        "Clients that want to write are refused with POLICY_VIOLATION.",
    )

    max_request_partition_size_limit: int = integer(
        2000, MEDIUM, "Most partitions of one response to DescribeTopicPartitions.", at_least(1)
    )

    # Producers
    producer_id_expiration_ms: int = integer(
        24 * 60 * _MINUTE_MS,
        LOW,
        "Time after which a partition forgets a producer that has written nothing.",
        at_least(1),
    )
    producer_id_expiration_check_interval_ms: int = integer(
        10 * _MINUTE_MS, LOW, "Interval at which forgotten producers are looked for.", at_least(1)
    )

    # Fetching
    fetch_max_bytes: int = integer(55 << 20, MEDIUM, "Most bytes of a fetch response.", at_least(1024))
    max_incremental_fetch_session_cache_slots: int = integer(
        1000, MEDIUM, "Most incremental fetch sessions.", at_least(0)
    )

    # Groups and their offsets
    group_min_session_timeout_ms: int = integer(
        6000, MEDIUM, "Shortest session timeout of members.", at_least(1)
    )
    group_max_session_timeout_ms: int = integer(
        30 * _MINUTE_MS, MEDIUM, "Longest session timeout of members.", at_least(1)
    )
    group_initial_rebalance_delay_ms: int = integer(
        3000, MEDIUM, "How long a new group waits for more members.", at_least(0)
    )
    group_max_size: int = integer(_INT_MAX, MEDIUM, "Most members of a group.", at_least(1))
    offsets_topic_num_partitions: int = integer(
        50, HIGH, "Partitions of __consumer_offsets when it is created.", at_least(1)
    )
    offsets_topic_replication_factor: int = short(1, HIGH, "Replicas of __consumer_offsets.", between(1, 1))
    offset_metadata_max_bytes: int = integer(4096, HIGH, "Longest note with a committed offset.", at_least(0))
    offsets_retention_minutes: int = integer(
        7 * 24 * 60, HIGH, "How long the offsets of a group without members stay.", at_least(1)
    )
    offsets_retention_check_interval_ms: int = long(
        10 * _MINUTE_MS, HIGH, "Time between looks for old offsets.", at_least(1)
    )

    # Quotas
    quota_window_num: int = integer(
        11, LOW, "Windows over which rates are held against the quotas of clients.", at_least(1)
    )
    quota_window_size_seconds: int = integer(1, LOW, "Length of such a window.", at_least(1))
    controller_quota_window_num: int = integer(
        11, LOW, "Windows whose controller mutations a client may make at once.", at_least(1)
    )
    controller_quota_window_size_seconds: int = integer(1, LOW, "Length of such a window.", at_least(1))

    overrides: Mapping[str, ListenerOverrides] = attrs.field(factory=dict)
    """The settings that were given for one listener alone, by its name in lower case."""

    @classmethod
    def parse(
        cls,
        config: ConfigSource = None,
        settings: Mapping[str, object] | None = None,
        **parameters: object,
    ) -> Self:
        """As for all configurations, and `listener.name.LISTENER.SETTING` besides."""
        common, for_listeners = split_off(config_mapping(config, cls.client))
        more, later = split_off(settings or {})
        for name in for_listeners.keys() & later.keys():
            raise ConfigError(f"{name} is given twice; remove one of the two.", name=name)
        overrides = listener_overrides({**for_listeners, **later})
        parsed = super().parse(common, more, **parameters)
        names = {listener.name.lower() for listener in parsed.listeners_with_security()}
        for name in overrides:
            if name not in names:
                raise ConfigError(f"{PREFIX}{name}: there is no such listener in listeners", name="listeners")
        made = attrs.evolve(parsed, overrides=overrides)
        for listener in made.listeners_with_security():
            made.listener_config(listener)
        return made

    @classmethod
    def adjust(cls, values: dict[str, Any], given: frozenset[str]) -> None:
        if not values["log.dirs"]:
            raise ConfigError("log.dirs must name at least one directory", name="log.dirs")
        if not values["listeners"]:
            raise ConfigError("listeners must name at least one address", name="listeners")
        protocols = parse_protocol_map(values["listener.security.protocol.map"])
        for name in ("listeners", "advertised.listeners"):
            for listener in values[name]:
                parse_listener(name, listener, protocols)
        if values["advertised.listeners"] and len(values["advertised.listeners"]) != len(values["listeners"]):
            raise ConfigError(
                "advertised.listeners must be empty or have one entry for each of listeners",
                name="advertised.listeners",
            )
        brokers = values["inter.broker.listener.name"].upper()
        names = [parse_listener("listeners", listener, protocols).name for listener in values["listeners"]]
        if "inter.broker.listener.name" in given and brokers not in names:
            raise ConfigError(
                f"inter.broker.listener.name: {brokers} is none of the listeners ({', '.join(names)})",
                name="inter.broker.listener.name",
            )
        values["inter.broker.listener.name"] = brokers
        parse_overrides(values["max.connections.per.ip.overrides"])
        if values["group.min.session.timeout.ms"] > values["group.max.session.timeout.ms"]:
            raise ConfigError(
                "group.min.session.timeout.ms is greater than group.max.session.timeout.ms",
                name="group.min.session.timeout.ms",
            )
        if values["log.cleaner.dedupe.buffer.size"] // values["log.cleaner.threads"] <= 1024 * 1024:
            raise ConfigError(
                "log.cleaner.dedupe.buffer.size must be more than 1 MiB for each of log.cleaner.threads",
                name="log.cleaner.dedupe.buffer.size",
            )
        if values["kclient.read.only"]:
            if values["kclient.adopt.topics"]:
                raise ConfigError(
                    "kclient.read.only and kclient.adopt.topics exclude each other", name="kclient.read.only"
                )
            values["auto.create.topics.enable"] = False
        log_defaults(values)

    def with_listener_settings(self, settings: Mapping[str, object]) -> Self:
        """Return the same with settings of single listeners, `listener.name.LISTENER.SETTING`. Raises ConfigError."""
        overrides = dict(self.overrides)
        for name, more in listener_overrides(settings).items():
            if all(listener.name.lower() != name for listener in self.listeners_with_security()):
                raise ConfigError(f"{PREFIX}{name}: there is no such listener in listeners", name="listeners")
            had = overrides.get(name, ListenerOverrides())
            overrides[name] = attrs.evolve(had, settings={**had.settings, **more.settings})
        made = attrs.evolve(self, overrides=overrides)
        for listener in made.listeners_with_security():
            made.listener_config(listener)
        return made

    @property
    def chooses_retention(self) -> bool:
        """True if a setting says how long the records of topics are kept that do not say it themselves."""
        default = attrs.fields_dict(BrokerConfig)["log_retention_hours"].default
        return (
            self.log_retention_ms is not None
            or self.log_retention_minutes is not None
            or self.log_retention_hours != default
        )

    def data_directories(self) -> list[Path]:
        """The directories of `log.dirs`."""
        return [Path(directory).expanduser() for directory in self.log_dirs]

    def listeners_with_security(self) -> list[Listener]:
        """The listeners with their security protocols, in the order of `listeners`."""
        return self._parsed("listeners", self.listeners)

    def metadata_directory(self) -> Path | None:
        """The directory of `metadata.log.dir`, None if it is not set."""
        return None if self.metadata_log_dir is None else Path(self.metadata_log_dir).expanduser()

    def advertised_endpoints(self) -> list[Endpoint]:
        """The addresses of `advertised.listeners`."""
        advertised = self._parsed("advertised.listeners", self.advertised_listeners)
        return [listener.endpoint for listener in advertised]

    def listener_config(self, listener: Listener) -> ListenerConfig:
        """The security settings of a listener: its own, and for the rest those of all. Raises ConfigError."""
        own = self.overrides.get(listener.name.lower(), ListenerOverrides())
        return listener_config(self, own)

    def jaas(self, listener: Listener) -> Mapping[str, Password]:
        """The options of a listener's SASL mechanisms, by their names in lower case."""
        return self.overrides.get(listener.name.lower(), ListenerOverrides()).jaas

    def _parsed(self, setting: str, listeners: list[str]) -> list[Listener]:
        protocols = parse_protocol_map(self.listener_security_protocol_map)
        return [parse_listener(setting, listener, protocols) for listener in listeners]

    def log_config(self) -> LogConfig:
        """The settings of a topic that has none of its own."""
        values = {name: getattr(self, name.replace(".", "_")) for name in _LOG_SETTINGS}
        return log_defaults(values)


_LOG_SETTINGS = {
    "compression.gzip.level": "compression.gzip.level",
    "compression.lz4.level": "compression.lz4.level",
    "compression.type": "compression.type",
    "compression.zstd.level": "compression.zstd.level",
    "log.cleaner.delete.retention.ms": "delete.retention.ms",
    "log.cleaner.max.compaction.lag.ms": "max.compaction.lag.ms",
    "log.cleaner.min.cleanable.ratio": "min.cleanable.dirty.ratio",
    "log.cleaner.min.compaction.lag.ms": "min.compaction.lag.ms",
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
