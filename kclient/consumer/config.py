"""Settings of the consumer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from kclient.config.client_configs import ClientConfig
from kclient.config.config_def import HIGH, LATER, LOW, MEDIUM
from kclient.config.declare import boolean, class_, integer, list_, raise_default, string, vary
from kclient.config.durations import parse_duration_ms
from kclient.config.validators import (
    NoDuplicates,
    OffsetReset,
    ResourceName,
    WordOrFunction,
    at_least,
    one_of,
)
from kclient.errors import ConfigError

DEFAULT_STRATEGY = ["range", "cooperative-sticky"]
"""The value of partition.assignment.strategy where none is given."""

_ONLY_CLASSIC = ("heartbeat.interval.ms", "session.timeout.ms", "partition.assignment.strategy")
"""Settings of the classic protocol; with the consumer protocol brokers and groups have them."""
_ONLY_CONSUMER = ("group.remote.assignor",)
_ANSWER_OVERHEAD_BYTES = 1_048_576
"""Room for what a fetch answer holds besides records."""


@attrs.frozen(kw_only=True)
class ConsumerConfig(ClientConfig):
    """The typed settings of a consumer. Immutable; any thread may read it. Made by `parse`, which checks
    them.
    """

    client: ClassVar[str] = "consumer"
    _identity: ClassVar[Mapping[str, str]] = {"client.id": "clientId", "group.id": "groupId"}

    client_id: str = vary(ClientConfig, "client.id", importance=LOW)
    key_deserializer: object | None = class_(
        None,
        HIGH,
        "A Deserializer or a callable that turns bytes into a key; without one, keys are bytes.",
        java_kind="deserializer",
    )
    value_deserializer: object | None = class_(
        None,
        HIGH,
        "A Deserializer or a callable that turns bytes into a value; without one, values are bytes.",
        java_kind="deserializer",
    )
    group_id: str | None = string(
        None, HIGH, "The group that the consumer shares its topics' partitions with, and commits offsets for."
    )
    group_instance_id: str | None = string(
        None,
        MEDIUM,
        "A lasting name, so that a restart within session.timeout.ms keeps the partitions (KIP-345).",
        ResourceName(),
    )
    group_protocol: str = string(
        "classic",
        HIGH,
        "The rebalance protocol: classic, or the consumer protocol of KIP-848.",
        one_of("classic", "consumer", ignore_case=True),
    )
    group_remote_assignor: str | None = string(
        None,
        MEDIUM,
        "The coordinator's assignor to use, for group.protocol=consumer: uniform or range.",
    )
    partition_assignment_strategy: list[object] = list_(
        DEFAULT_STRATEGY,
        MEDIUM,
        "The assignors, preferred first: range, roundrobin, sticky, cooperative-sticky, or objects of your own.",
        NoDuplicates(),
        java_kind="assignor",
        takes="kclient.consumer.assignor:ConsumerPartitionAssignor",
    )
    session_timeout_ms: int = integer(
        45_000,
        HIGH,
        "After how long without a heartbeat the coordinator takes the consumer for dead.",
        at_least(1),
    )
    heartbeat_interval_ms: int = integer(
        3000, HIGH, "How often the consumer tells the coordinator that it lives.", at_least(1)
    )
    max_poll_interval_ms: int = integer(
        300_000,
        MEDIUM,
        "How long the application may take between two calls of poll() before the consumer leaves its group.",
        at_least(1),
    )
    max_poll_records: int = integer(500, MEDIUM, "How many records one poll() returns at most.", at_least(1))
    enable_auto_commit: bool = boolean(
        True,
        MEDIUM,
        "Whether poll() and revocation commit what earlier polls returned, and close() all that was returned.",
    )
    auto_commit_interval_ms: int = integer(
        5000, LOW, "How often poll() commits, with enable.auto.commit.", at_least(0)
    )
    auto_offset_reset: str = string(
        "latest",
        MEDIUM,
        "Where to start without a valid offset: earliest, latest, by_duration:P7D (ago), or none (raise).",
        OffsetReset(),
    )
    allow_auto_create_topics: bool = boolean(
        True, MEDIUM, "Whether the broker may create a topic that is subscribed to and does not exist."
    )
    exclude_internal_topics: bool = boolean(
        True, MEDIUM, "Whether a subscribed pattern leaves out Kafka's internal topics."
    )
    isolation_level: str = string(
        "read_uncommitted",
        MEDIUM,
        "Whether records of open and aborted transactions are returned.",
        one_of("read_uncommitted", "read_committed"),
    )
    check_crcs: bool = boolean(True, LOW, "Whether the checksum of every fetched batch is checked.")
    fetch_min_bytes: int = integer(
        1,
        HIGH,
        "How many bytes a broker gathers before it answers a fetch, within fetch.max.wait.ms.",
        at_least(0),
    )
    fetch_max_wait_ms: int = integer(500, LOW, "How long a broker waits for fetch.min.bytes.", at_least(0))
    fetch_max_bytes: int = integer(
        52_428_800,
        MEDIUM,
        "How many bytes of records a fetch returns at most; a first batch that is larger is still returned.",
        at_least(0),
    )
    max_partition_fetch_bytes: int = integer(1_048_576, HIGH, "The same for each partition.", at_least(0))
    client_rack: str = string(
        "", LOW, "The rack that the consumer runs in, so that it can read from a replica nearby (KIP-392)."
    )
    default_api_timeout_ms: int = integer(
        60_000, MEDIUM, "How long calls without a timeout of their own may take.", at_least(0)
    )
    interceptor_classes: list[object] = list_(
        [],
        LOW,
        "Objects that see, and may change, records before poll() returns them, and see commits.",
        NoDuplicates(),
        java_kind="interceptor",
        takes="kclient.consumer.interceptor:ConsumerInterceptor",
    )
    internal_throw_on_fetch_stable_offset_unsupported: bool = boolean(
        False,
        LOW,
        "Whether old brokers that cannot tell stable offsets are an error; used by Kafka Streams.",
        support=LATER,
    )
    share_acknowledgement_mode: str = string(
        "implicit",
        MEDIUM,
        "Only for share consumers: whether poll() accepts what the poll before returned.",
        one_of("implicit", "explicit"),
    )
    share_acquire_mode: str = string(
        "batch_optimized",
        MEDIUM,
        "Only for share consumers: whether brokers deliver whole batches or max.poll.records at most (KIP-1206).",
        one_of("batch_optimized", "record_limit", ignore_case=True),
    )
    kclient_decompress_max_bytes: int = integer(
        67_108_864,
        LOW,
        "How many bytes one batch may have when it is decompressed; guards against decompression bombs.",
        at_least(1024),
    )
    kclient_on_deserialization_error: object = class_(
        "raise",
        MEDIUM,
        "What becomes of a record that a deserializer fails for: poll() raises, it is left out, or a function decides.",
        WordOrFunction(("raise", "skip")),
        takes="kclient.consumer.types:OnDeserializationError",
    )

    @property
    def auto_offset_reset_duration_ms(self) -> int | None:
        """The time that `auto.offset.reset=by_duration:...` goes back; None with another policy."""
        policy, _, duration = self.auto_offset_reset.partition(":")
        return parse_duration_ms(duration) if policy == "by_duration" else None

    @classmethod
    def adjust(cls, values: dict[str, Any], given: frozenset[str]) -> None:
        """The consumer's cross-key rules: Java's, and what cannot work."""
        super().adjust(values, given)
        _fit_group(values, given)
        _fit_protocol(values, given)
        _fit_assignors(values)
        _less(values, "heartbeat.interval.ms", "session.timeout.ms")
        fit_fetches(values, given)
        _refuse_share_settings(values)


def _refuse_share_settings(values: dict[str, Any]) -> None:
    for name, default in (
        ("share.acknowledgement.mode", "implicit"),
        ("share.acquire.mode", "batch_optimized"),
    ):
        if values[name].lower() != default:
            raise ConfigError(
                f"{name}={values[name]} is for share consumers: use KafkaShareConsumer.", name=name
            )


def fit_fetches(values: dict[str, Any], given: frozenset[str]) -> None:
    """Check the settings of fetches, whose answers have to come in time and fit into what may be received."""
    _less(values, "fetch.max.wait.ms", "request.timeout.ms")
    _fit_receive_limit(values, given)


def _fit_group(values: dict[str, Any], given: frozenset[str]) -> None:
    if values["group.id"] == "":
        raise ConfigError("group.id must not be empty; leave it out to be in no group.", name="group.id")
    if values["group.id"] is not None:
        return
    if "enable.auto.commit" in given and values["enable.auto.commit"]:
        raise ConfigError("enable.auto.commit=true needs a group.id.", name="enable.auto.commit")
    if values["group.instance.id"] is not None:
        raise ConfigError("group.instance.id needs a group.id.", name="group.instance.id")
    values["enable.auto.commit"] = False


def _fit_protocol(values: dict[str, Any], given: frozenset[str]) -> None:
    """Refuse settings that the other protocol has, as Java does: who sets them expects them to work."""
    protocol = values["group.protocol"]
    for name in _ONLY_CLASSIC if protocol == "consumer" else _ONLY_CONSUMER:
        if name in given and values[name] is not None:
            raise ConfigError(f"{name} cannot be set when group.protocol={protocol}.", name=name)


def _fit_assignors(values: dict[str, Any]) -> None:
    name = "partition.assignment.strategy"
    if not values[name]:
        raise ConfigError(
            f"{name}: it is empty; use range, roundrobin, sticky, cooperative-sticky or an assignor of your own.",
            name=name,
        )


def _less(values: dict[str, Any], smaller: str, larger: str) -> None:
    if values[smaller] >= values[larger]:
        raise ConfigError(
            f"{smaller} ({values[smaller]}) must be less than {larger} ({values[larger]}).", name=smaller
        )


def _fit_receive_limit(values: dict[str, Any], given: frozenset[str]) -> None:
    """An answer with fetch.max.bytes of records must fit into what the client is ready to receive."""
    limit, fetch = "kclient.receive.max.bytes", "fetch.max.bytes"
    needed = min(values[fetch] + _ANSWER_OVERHEAD_BYTES, 2**31 - 1)
    raise_default(values, given, limit, needed, f"{needed}, for {fetch}={values[fetch]}")
