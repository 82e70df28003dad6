"""Settings of the producer."""

from __future__ import annotations

import logging
from typing import Any, ClassVar

import attrs

from kclient.config import Importance, Support, Type, setting
from kclient.config.client_configs import ClientConfig
from kclient.config.validators import Levels, NoDuplicates, NonEmpty, at_least, between, one_of
from kclient.errors import ConfigError

_log = logging.getLogger(__name__)

_INT_MAX = 2**31 - 1
_MAX_IN_FLIGHT_WITH_IDEMPOTENCE = 5


@attrs.frozen(kw_only=True)
class ProducerConfig(ClientConfig):
    """The typed settings of a producer. Immutable; any thread may read it. Made by `parse`, which checks
    them.
    """

    client: ClassVar[str] = "producer"

    key_serializer: object | None = setting(
        "key.serializer",
        Type.CLASS,
        None,
        Importance.HIGH,
        "A Serializer or a callable that turns a key into bytes; without one, keys are bytes.",
        java_kind="serializer",
    )
    value_serializer: object | None = setting(
        "value.serializer",
        Type.CLASS,
        None,
        Importance.HIGH,
        "A Serializer or a callable that turns a value into bytes; without one, values are bytes.",
        java_kind="serializer",
    )
    acks: str = setting(
        "acks",
        Type.STRING,
        "all",
        Importance.LOW,
        "Who must have a record before it counts as sent: all in-sync replicas, the leader (1), no one (0).",
        validator=one_of("all", "-1", "0", "1"),
    )
    retries: int = setting(
        "retries",
        Type.INT,
        _INT_MAX,
        Importance.HIGH,
        "How often a batch is sent again after a passing error; delivery.timeout.ms is the better limit.",
        validator=between(0, _INT_MAX),
    )
    delivery_timeout_ms: int = setting(
        "delivery.timeout.ms",
        Type.INT,
        120_000,
        Importance.MEDIUM,
        "How long after send() a record has been delivered or has failed, with all its retries.",
        validator=at_least(0),
    )
    linger_ms: int = setting(
        "linger.ms",
        Type.LONG,
        5,
        Importance.MEDIUM,
        "How long a batch that is not full waits for more records.",
        validator=at_least(0),
    )
    batch_size: int = setting(
        "batch.size",
        Type.INT,
        16_384,
        Importance.MEDIUM,
        "How many bytes of one partition's records go into a batch; 0 sends every record alone.",
        validator=at_least(0),
    )
    buffer_memory: int = setting(
        "buffer.memory",
        Type.LONG,
        33_554_432,
        Importance.HIGH,
        "How many bytes of records may wait in the producer; when they are used up, send() blocks.",
        validator=at_least(0),
    )
    buffer_memory_allocation_strategy: str = setting(
        "buffer.memory.allocation.strategy",
        Type.STRING,
        "full",
        Importance.MEDIUM,
        "Whether a batch takes all its memory at once or as it grows.",
        validator=one_of("full", "incremental", ignore_case=True),
        support=Support.LATER,
    )
    max_block_ms: int = setting(
        "max.block.ms",
        Type.LONG,
        60_000,
        Importance.MEDIUM,
        "How long send() and partitions_for() may wait for metadata and buffer space.",
        validator=at_least(0),
    )
    max_request_size: int = setting(
        "max.request.size",
        Type.INT,
        1_048_576,
        Importance.MEDIUM,
        "How many bytes a request, and so a record, may have at most.",
        validator=at_least(0),
    )
    max_in_flight_requests_per_connection: int = setting(
        "max.in.flight.requests.per.connection",
        Type.INT,
        5,
        Importance.LOW,
        "How many requests may wait for their answer on a connection.",
        validator=at_least(1),
    )
    enable_idempotence: bool = setting(
        "enable.idempotence",
        Type.BOOLEAN,
        True,
        Importance.LOW,
        "Whether brokers keep each record exactly once and in order even when it is sent again.",
    )
    compression_type: str = setting(
        "compression.type",
        Type.STRING,
        "none",
        Importance.HIGH,
        "How batches are compressed.",
        validator=one_of("none", "gzip", "snappy", "lz4", "zstd"),
    )
    compression_gzip_level: int = setting(
        "compression.gzip.level",
        Type.INT,
        -1,
        Importance.MEDIUM,
        "How hard gzip tries; -1 is zlib's own choice.",
        validator=Levels(1, 9, -1),
    )
    compression_lz4_level: int = setting(
        "compression.lz4.level",
        Type.INT,
        9,
        Importance.MEDIUM,
        "How hard lz4 tries.",
        validator=between(1, 17),
    )
    compression_zstd_level: int = setting(
        "compression.zstd.level",
        Type.INT,
        3,
        Importance.MEDIUM,
        "How hard zstd tries; levels below zero are faster and compress less.",
        validator=between(-131_072, 22),
    )
    partitioner_class: object | None = setting(
        "partitioner.class",
        Type.CLASS,
        None,
        Importance.MEDIUM,
        "An object that chooses partitions; without one, keys are hashed, the others fill batch by batch.",
        java_kind="partitioner",
        takes="kclient.producer.partitioner:Partitioner",
    )
    partitioner_ignore_keys: bool = setting(
        "partitioner.ignore.keys",
        Type.BOOLEAN,
        False,
        Importance.MEDIUM,
        "Whether the built-in partitioner treats records with a key as if they had none.",
    )
    partitioner_adaptive_partitioning_enable: bool = setting(
        "partitioner.adaptive.partitioning.enable",
        Type.BOOLEAN,
        True,
        Importance.LOW,
        "Whether records without key go more often to partitions whose brokers are faster.",
    )
    kclient_adaptive_batching: bool = setting(
        "kclient.adaptive.batching",
        Type.BOOLEAN,
        True,
        Importance.LOW,
        "Whether batches that wait for others in flight may grow beyond batch.size, up to max.request.size and "
        "500,000 bytes.",
    )
    partitioner_availability_timeout_ms: int = setting(
        "partitioner.availability.timeout.ms",
        Type.LONG,
        0,
        Importance.LOW,
        "After how long without progress a broker gets no more records without key; 0 is never.",
        validator=at_least(0),
    )
    partitioner_rack_aware: bool = setting(
        "partitioner.rack.aware",
        Type.BOOLEAN,
        False,
        Importance.LOW,
        "Whether records without key prefer partitions whose leader is in client.rack.",
        support=Support.LATER,
    )
    client_rack: str = setting(
        "client.rack",
        Type.STRING,
        "",
        Importance.LOW,
        "The rack that the producer runs in, for partitioner.rack.aware.",
        support=Support.LATER,
    )
    metadata_max_idle_ms: int = setting(
        "metadata.max.idle.ms",
        Type.LONG,
        300_000,
        Importance.LOW,
        "How long a topic that is not used stays in the producer's metadata.",
        validator=at_least(5000),
    )
    interceptor_classes: list[object] = setting(
        "interceptor.classes",
        Type.LIST,
        [],
        Importance.LOW,
        "Objects that see, and may change, records before they are sent, and see their outcome.",
        validator=NoDuplicates(),
        java_kind="interceptor",
        takes="kclient.producer.interceptor:ProducerInterceptor",
    )
    transactional_id: str | None = setting(
        "transactional.id",
        Type.STRING,
        None,
        Importance.LOW,
        "The name under which the producer's transactions survive its restarts.",
        validator=NonEmpty(),
        support=Support.LATER,
    )
    transaction_timeout_ms: int = setting(
        "transaction.timeout.ms",
        Type.INT,
        60_000,
        Importance.LOW,
        "How long a transaction may stay open before the broker aborts it.",
        validator=at_least(1),
        support=Support.LATER,
    )
    transaction_two_phase_commit_enable: bool = setting(
        "transaction.two.phase.commit.enable",
        Type.BOOLEAN,
        False,
        Importance.LOW,
        "Whether transactions are part of an outer two-phase commit and never time out.",
        support=Support.LATER,
    )

    @property
    def required_acks(self) -> int:
        """`acks` as the protocol has it: -1 for all."""
        return -1 if self.acks == "all" else int(self.acks)

    @classmethod
    def adjust(cls, values: dict[str, Any], given: frozenset[str]) -> None:
        """The producer's cross-key rules, which are Java's."""
        super().adjust(values, given)
        if values["acks"] == "-1":
            values["acks"] = "all"
        _map_old_partitioners(values, given)
        _fit_idempotence(values, given)
        _fit_delivery_timeout(values, given)


def _map_old_partitioners(values: dict[str, Any], given: frozenset[str]) -> None:
    """Java's former partitioners are what the built-in one does (KIP-794)."""
    if values["partitioner.class"] == "uniform_sticky":
        if "partitioner.ignore.keys" in given and not values["partitioner.ignore.keys"]:
            raise ConfigError(
                "UniformStickyPartitioner as partitioner.class contradicts partitioner.ignore.keys=false.",
                name="partitioner.class",
            )
        values["partitioner.ignore.keys"] = True
    if values["partitioner.class"] in {"default", "uniform_sticky"}:
        values["partitioner.class"] = None


def _fit_idempotence(values: dict[str, Any], given: frozenset[str]) -> None:
    """Idempotence needs acks=all, retries and at most 5 requests in flight.

    Who asked for it is told what is in its way; who got it by default gets what was asked for instead.
    """
    if not values["enable.idempotence"]:
        return
    in_flight = values["max.in.flight.requests.per.connection"]
    obstacles = [
        ("acks", values["acks"] != "all", "acks=all"),
        ("retries", values["retries"] == 0, "retries larger than 0"),
        (
            "max.in.flight.requests.per.connection",
            in_flight > _MAX_IN_FLIGHT_WITH_IDEMPOTENCE,
            f"max.in.flight.requests.per.connection of at most {_MAX_IN_FLIGHT_WITH_IDEMPOTENCE}",
        ),
    ]
    for name, is_obstacle, wanted in obstacles:
        if not is_obstacle:
            continue
        if "enable.idempotence" in given:
            raise ConfigError(f"enable.idempotence=true needs {wanted}, not {values[name]}.", name=name)
        _log.warning("Idempotence is off because it needs %s, not %s.", wanted, values[name])
        values["enable.idempotence"] = False


def _fit_delivery_timeout(values: dict[str, Any], given: frozenset[str]) -> None:
    """A batch must be able to linger and to wait for one answer before its time is up."""
    values["linger.ms"] = min(values["linger.ms"], _INT_MAX)
    needed = min(values["linger.ms"] + values["request.timeout.ms"], _INT_MAX)
    if values["delivery.timeout.ms"] >= needed:
        return
    if "delivery.timeout.ms" in given:
        raise ConfigError(
            f"delivery.timeout.ms ({values['delivery.timeout.ms']}) must be at least linger.ms "
            f"({values['linger.ms']}) + request.timeout.ms ({values['request.timeout.ms']}).",
            name="delivery.timeout.ms",
        )
    _log.warning("delivery.timeout.ms is raised to linger.ms + request.timeout.ms = %s.", needed)
    values["delivery.timeout.ms"] = needed
