"""Settings of the producer."""

from __future__ import annotations

import logging
from typing import Any, ClassVar

import attrs

from kclient.config.client_configs import ClientConfig
from kclient.config.config_def import HIGH, LATER, LOW, MEDIUM
from kclient.config.declare import boolean, class_, integer, list_, long, raise_default, string
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

    key_serializer: object | None = class_(
        None,
        HIGH,
        "A Serializer or a callable that turns a key into bytes; without one, keys are bytes.",
        java_kind="serializer",
    )
    value_serializer: object | None = class_(
        None,
        HIGH,
        "A Serializer or a callable that turns a value into bytes; without one, values are bytes.",
        java_kind="serializer",
    )
    acks: str = string(
        "all",
        LOW,
        "Who must have a record before it counts as sent: all in-sync replicas, the leader (1), no one (0).",
        one_of("all", "-1", "0", "1"),
    )
    retries: int = integer(
        _INT_MAX,
        HIGH,
        "How often a batch is sent again after a passing error; delivery.timeout.ms is the better limit.",
        between(0, _INT_MAX),
    )
    delivery_timeout_ms: int = integer(
        120_000,
        MEDIUM,
        "How long after send() a record has been delivered or has failed, with all its retries.",
        at_least(0),
    )
    linger_ms: int = long(5, MEDIUM, "How long a batch that is not full waits for more records.", at_least(0))
    batch_size: int = integer(
        16_384,
        MEDIUM,
        "How many bytes of one partition's records go into a batch; 0 sends every record alone.",
        at_least(0),
    )
    buffer_memory: int = long(
        33_554_432,
        HIGH,
        "How many bytes of records may wait in the producer; when they are used up, send() blocks.",
        at_least(0),
    )
    buffer_memory_allocation_strategy: str = string(
        "full",
        MEDIUM,
        "Whether a batch takes all its memory at once or as it grows.",
        one_of("full", "incremental", ignore_case=True),
        support=LATER,
    )
    max_block_ms: int = long(
        60_000,
        MEDIUM,
        "How long send() and partitions_for() may wait for metadata and buffer space.",
        at_least(0),
    )
    max_request_size: int = integer(
        1_048_576, MEDIUM, "How many bytes a request, and so a record, may have at most.", at_least(0)
    )
    max_in_flight_requests_per_connection: int = integer(
        5, LOW, "How many requests may wait for their answer on a connection.", at_least(1)
    )
    enable_idempotence: bool = boolean(
        True, LOW, "Whether brokers keep each record exactly once and in order even when it is sent again."
    )
    compression_type: str = string(
        "none", HIGH, "How batches are compressed.", one_of("none", "gzip", "snappy", "lz4", "zstd")
    )
    compression_gzip_level: int = integer(
        -1, MEDIUM, "How hard gzip tries; -1 is zlib's own choice.", Levels(1, 9, -1)
    )
    compression_lz4_level: int = integer(9, MEDIUM, "How hard lz4 tries.", between(1, 17))
    compression_zstd_level: int = integer(
        3,
        MEDIUM,
        "How hard zstd tries; levels below zero are faster and compress less.",
        between(-131_072, 22),
    )
    partitioner_class: object | None = class_(
        None,
        MEDIUM,
        "An object that chooses partitions; without one, keys are hashed, the others fill batch by batch.",
        java_kind="partitioner",
        takes="kclient.producer.partitioner:Partitioner",
    )
    partitioner_ignore_keys: bool = boolean(
        False, MEDIUM, "Whether the built-in partitioner treats records with a key as if they had none."
    )
    partitioner_adaptive_partitioning_enable: bool = boolean(
        True, LOW, "Whether records without key go more often to partitions whose brokers are faster."
    )
    kclient_adaptive_batching: bool = boolean(
        True,
        LOW,
        "Whether batches that wait for others in flight may grow beyond batch.size, up to max.request.size and "
        "500,000 bytes.",
    )
    partitioner_availability_timeout_ms: int = long(
        0,
        LOW,
        "After how long without progress a broker gets no more records without key; 0 is never.",
        at_least(0),
    )
    partitioner_rack_aware: bool = boolean(
        False,
        LOW,
        "Whether records without key prefer partitions whose leader is in client.rack.",
        support=LATER,
    )
    client_rack: str = string(
        "", LOW, "The rack that the producer runs in, for partitioner.rack.aware.", support=LATER
    )
    metadata_max_idle_ms: int = long(
        300_000, LOW, "How long a topic that is not used stays in the producer's metadata.", at_least(5000)
    )
    interceptor_classes: list[object] = list_(
        [],
        LOW,
        "Objects that see, and may change, records before they are sent, and see their outcome.",
        NoDuplicates(),
        java_kind="interceptor",
        takes="kclient.producer.interceptor:ProducerInterceptor",
    )
    transactional_id: str | None = string(
        None,
        LOW,
        "The name under which the producer's transactions survive its restarts; of all producers with the same one "
        "only the newest may write.",
        NonEmpty(),
    )
    transaction_timeout_ms: int = integer(
        60_000,
        LOW,
        "How long a transaction may stay open before the broker aborts it.",
        at_least(1),
    )
    transaction_two_phase_commit_enable: bool = boolean(
        False,
        LOW,
        "Whether transactions are part of an outer two-phase commit and never time out.",
        support=LATER,
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
        if values["transactional.id"] is not None:
            _fit_transactions(values, given)


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


def _fit_transactions(values: dict[str, Any], given: frozenset[str]) -> None:
    """Transactions need idempotence."""
    if not values["enable.idempotence"]:
        raise ConfigError(
            "transactional.id needs enable.idempotence=true, which needs acks=all, retries and at most 5 "
            "max.in.flight.requests.per.connection.",
            name="transactional.id",
        )
    if "client.id" not in given:
        values["client.id"] = f"producer-{values['transactional.id']}"


def _fit_delivery_timeout(values: dict[str, Any], given: frozenset[str]) -> None:
    """A batch must be able to linger and to wait for one answer before its time is up."""
    values["linger.ms"] = min(values["linger.ms"], _INT_MAX)
    needed = min(values["linger.ms"] + values["request.timeout.ms"], _INT_MAX)
    reason = f"linger.ms ({values['linger.ms']}) + request.timeout.ms ({values['request.timeout.ms']})"
    if raise_default(values, given, "delivery.timeout.ms", needed, reason):
        _log.warning("delivery.timeout.ms is raised to linger.ms + request.timeout.ms = %s.", needed)
