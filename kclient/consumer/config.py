"""Settings of the consumer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from kclient.config import Importance, Support, Type, setting, vary
from kclient.config.client_configs import ClientConfig
from kclient.config.durations import parse_duration_ms
from kclient.config.validators import NoDuplicates, OffsetReset, ResourceName, at_least, one_of
from kclient.errors import ConfigError
from kclient.utils.log_context import shared_logger

_log = shared_logger(__name__)

_ASSIGNORS_TO_COME = frozenset({"sticky", "cooperative-sticky"})
_ANSWER_OVERHEAD_BYTES = 1_048_576
"""Room for what a fetch answer holds besides records."""


@attrs.frozen(kw_only=True)
class ConsumerConfig(ClientConfig):
    """The typed settings of a consumer. Immutable; any thread may read it. Made by `parse`, which checks
    them.
    """

    client: ClassVar[str] = "consumer"
    _identity: ClassVar[Mapping[str, str]] = {"client.id": "clientId", "group.id": "groupId"}

    client_id: str = vary(ClientConfig, "client.id", importance=Importance.LOW)
    key_deserializer: object | None = setting(
        "key.deserializer",
        Type.CLASS,
        None,
        Importance.HIGH,
        "A Deserializer or a callable that turns bytes into a key; without one, keys are bytes.",
        java_kind="deserializer",
    )
    value_deserializer: object | None = setting(
        "value.deserializer",
        Type.CLASS,
        None,
        Importance.HIGH,
        "A Deserializer or a callable that turns bytes into a value; without one, values are bytes.",
        java_kind="deserializer",
    )
    group_id: str | None = setting(
        "group.id",
        Type.STRING,
        None,
        Importance.HIGH,
        "The group that the consumer shares its topics' partitions with, and commits offsets for.",
    )
    group_instance_id: str | None = setting(
        "group.instance.id",
        Type.STRING,
        None,
        Importance.MEDIUM,
        "A lasting name, so that a restart within session.timeout.ms keeps the partitions (KIP-345).",
        validator=ResourceName(),
    )
    group_protocol: str = setting(
        "group.protocol",
        Type.STRING,
        "classic",
        Importance.HIGH,
        "The rebalance protocol: classic, or the consumer protocol of KIP-848.",
        validator=one_of("classic", "consumer", ignore_case=True),
        support=Support.LATER,
        off=("classic",),
    )
    group_remote_assignor: str | None = setting(
        "group.remote.assignor",
        Type.STRING,
        None,
        Importance.MEDIUM,
        "The coordinator's assignor to use, for group.protocol=consumer.",
        support=Support.LATER,
    )
    partition_assignment_strategy: list[object] = setting(
        "partition.assignment.strategy",
        Type.LIST,
        ["range"],
        Importance.MEDIUM,
        "How partitions are shared out: range, roundrobin or assignor objects, the preferred one first.",
        validator=NoDuplicates(),
        java_kind="assignor",
        takes="kclient.consumer.assignor:ConsumerPartitionAssignor",
    )
    session_timeout_ms: int = setting(
        "session.timeout.ms",
        Type.INT,
        45_000,
        Importance.HIGH,
        "After how long without a heartbeat the coordinator takes the consumer for dead.",
        validator=at_least(1),
    )
    heartbeat_interval_ms: int = setting(
        "heartbeat.interval.ms",
        Type.INT,
        3000,
        Importance.HIGH,
        "How often the consumer tells the coordinator that it lives.",
        validator=at_least(1),
    )
    max_poll_interval_ms: int = setting(
        "max.poll.interval.ms",
        Type.INT,
        300_000,
        Importance.MEDIUM,
        "How long the application may take between two calls of poll() before the consumer leaves its group.",
        validator=at_least(1),
    )
    max_poll_records: int = setting(
        "max.poll.records",
        Type.INT,
        500,
        Importance.MEDIUM,
        "How many records one poll() returns at most.",
        validator=at_least(1),
    )
    enable_auto_commit: bool = setting(
        "enable.auto.commit",
        Type.BOOLEAN,
        True,
        Importance.MEDIUM,
        "Whether poll() and revocation commit what earlier polls returned, and close() all that was returned.",
    )
    auto_commit_interval_ms: int = setting(
        "auto.commit.interval.ms",
        Type.INT,
        5000,
        Importance.LOW,
        "How often poll() commits, with enable.auto.commit.",
        validator=at_least(0),
    )
    auto_offset_reset: str = setting(
        "auto.offset.reset",
        Type.STRING,
        "latest",
        Importance.MEDIUM,
        "Where to start without a valid offset: earliest, latest, by_duration:P7D (ago), or none (raise).",
        validator=OffsetReset(),
    )
    allow_auto_create_topics: bool = setting(
        "allow.auto.create.topics",
        Type.BOOLEAN,
        True,
        Importance.MEDIUM,
        "Whether the broker may create a topic that is subscribed to and does not exist.",
    )
    exclude_internal_topics: bool = setting(
        "exclude.internal.topics",
        Type.BOOLEAN,
        True,
        Importance.MEDIUM,
        "Whether a subscribed pattern leaves out Kafka's internal topics.",
    )
    isolation_level: str = setting(
        "isolation.level",
        Type.STRING,
        "read_uncommitted",
        Importance.MEDIUM,
        "Whether records of open and aborted transactions are returned.",
        validator=one_of("read_uncommitted", "read_committed"),
    )
    check_crcs: bool = setting(
        "check.crcs",
        Type.BOOLEAN,
        True,
        Importance.LOW,
        "Whether the checksum of every fetched batch is checked.",
    )
    fetch_min_bytes: int = setting(
        "fetch.min.bytes",
        Type.INT,
        1,
        Importance.HIGH,
        "How many bytes a broker gathers before it answers a fetch, within fetch.max.wait.ms.",
        validator=at_least(0),
    )
    fetch_max_wait_ms: int = setting(
        "fetch.max.wait.ms",
        Type.INT,
        500,
        Importance.LOW,
        "How long a broker waits for fetch.min.bytes.",
        validator=at_least(0),
    )
    fetch_max_bytes: int = setting(
        "fetch.max.bytes",
        Type.INT,
        52_428_800,
        Importance.MEDIUM,
        "How many bytes of records a fetch returns at most; a first batch that is larger is still returned.",
        validator=at_least(0),
    )
    max_partition_fetch_bytes: int = setting(
        "max.partition.fetch.bytes",
        Type.INT,
        1_048_576,
        Importance.HIGH,
        "The same for each partition.",
        validator=at_least(0),
    )
    client_rack: str = setting(
        "client.rack",
        Type.STRING,
        "",
        Importance.LOW,
        "The rack that the consumer runs in, so that it can read from a replica nearby (KIP-392).",
    )
    default_api_timeout_ms: int = setting(
        "default.api.timeout.ms",
        Type.INT,
        60_000,
        Importance.MEDIUM,
        "How long calls without a timeout of their own may take.",
        validator=at_least(0),
    )
    interceptor_classes: list[object] = setting(
        "interceptor.classes",
        Type.LIST,
        [],
        Importance.LOW,
        "Objects that see, and may change, records before poll() returns them, and see commits.",
        validator=NoDuplicates(),
        java_kind="interceptor",
        takes="kclient.consumer.interceptor:ConsumerInterceptor",
    )
    internal_throw_on_fetch_stable_offset_unsupported: bool = setting(
        "internal.throw.on.fetch.stable.offset.unsupported",
        Type.BOOLEAN,
        False,
        Importance.LOW,
        "Whether old brokers that cannot tell stable offsets are an error; used by Kafka Streams.",
        support=Support.LATER,
    )
    share_acknowledgement_mode: str = setting(
        "share.acknowledgement.mode",
        Type.STRING,
        "implicit",
        Importance.MEDIUM,
        "Whether the next poll() of a share consumer acknowledges the records of the last one.",
        validator=one_of("implicit", "explicit"),
        support=Support.LATER,
    )
    share_acquire_mode: str = setting(
        "share.acquire.mode",
        Type.STRING,
        "batch_optimized",
        Importance.MEDIUM,
        "Whether a share consumer gets whole batches or at most max.poll.records (KIP-1206).",
        validator=one_of("batch_optimized", "record_limit", ignore_case=True),
        support=Support.LATER,
    )
    kclient_decompress_max_bytes: int = setting(
        "kclient.decompress.max.bytes",
        Type.INT,
        67_108_864,
        Importance.LOW,
        "How many bytes one batch may have when it is decompressed; guards against decompression bombs.",
        validator=at_least(1024),
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
        _fit_assignors(values)
        _less(values, "heartbeat.interval.ms", "session.timeout.ms")
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


def _fit_assignors(values: dict[str, Any]) -> None:
    name = "partition.assignment.strategy"
    usable = [assignor for assignor in values[name] if assignor not in _ASSIGNORS_TO_COME]
    left_out = [assignor for assignor in values[name] if assignor in _ASSIGNORS_TO_COME]
    if not usable:
        what = f"{', '.join(left_out)} is not implemented yet" if left_out else "it is empty"
        raise ConfigError(f"{name}: {what}; use range, roundrobin or an assignor of your own.", name=name)
    if left_out:
        _log.warning("%s: %s is not implemented yet and left out.", name, ", ".join(left_out))
    values[name] = usable


def _less(values: dict[str, Any], smaller: str, larger: str) -> None:
    if values[smaller] >= values[larger]:
        raise ConfigError(
            f"{smaller} ({values[smaller]}) must be less than {larger} ({values[larger]}).", name=smaller
        )


def _fit_receive_limit(values: dict[str, Any], given: frozenset[str]) -> None:
    """An answer with fetch.max.bytes of records must fit into what the client is ready to receive."""
    limit, fetch = "kclient.receive.max.bytes", "fetch.max.bytes"
    needed = min(values[fetch] + _ANSWER_OVERHEAD_BYTES, 2**31 - 1)
    if values[limit] >= needed:
        return
    if limit in given:
        raise ConfigError(
            f"{limit} ({values[limit]}) must be at least {needed}, for {fetch}={values[fetch]}.",
            name=limit,
        )
    values[limit] = needed
