"""The choice of the partition that a record goes to."""

from __future__ import annotations

import itertools
import threading
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

from kclient._accel import murmur2
from kclient.common.cluster import Cluster
from kclient.config.java_names import java_alias
from kclient.errors import ConfigError


@runtime_checkable
class Partitioner(Protocol):
    """Places records. `partition` is called by every thread that sends. A `close()`, if there is one, is called once.

    The topic is known when it is called, so `cluster` has its partitions.
    """

    def partition(
        self,
        topic: str,
        key: Any,
        key_bytes: bytes | None,
        value: Any,
        value_bytes: bytes | None,
        cluster: Cluster,
    ) -> int | None:
        """The partition, or None to leave the choice to the producer's uniform sticky rule (KIP-794)."""
        ...


def partition_for_key(key_bytes: bytes, partition_count: int) -> int:
    """Return the partition that Java's default partitioner chooses for this key."""
    return (murmur2(key_bytes) & 0x7FFFFFFF) % partition_count


class DefaultPartitioner:
    """The key decides by its murmur2 hash, as in Java; records without a key go wherever there is room. Thread-safe.

    This is what a producer does if `partitioner.class` is not set; it is here to be built upon.
    """

    def partition(
        self,
        topic: str,
        key: Any,  # noqa: ARG002 - the signature is the contract
        key_bytes: bytes | None,
        value: Any,  # noqa: ARG002
        value_bytes: bytes | None,  # noqa: ARG002
        cluster: Cluster,
    ) -> int | None:
        """The key's partition, None without a key."""
        if key_bytes is None:
            return None
        return partition_for_key(key_bytes, len(cluster.partitions_for_topic(topic)))


class RoundRobinPartitioner:
    """Takes the partitions that have a leader in turn, whatever the key. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a signal handler may send, too
        self._turns: defaultdict[str, Iterator[int]] = defaultdict(itertools.count)

    def partition(
        self,
        topic: str,
        key: Any,  # noqa: ARG002 - the signature is the contract
        key_bytes: bytes | None,  # noqa: ARG002
        value: Any,  # noqa: ARG002
        value_bytes: bytes | None,  # noqa: ARG002
        cluster: Cluster,
    ) -> int:
        """The next one."""
        with self._lock:
            turn = next(self._turns[topic])
        infos = cluster.available_partitions_for_topic(topic) or cluster.partitions_for_topic(topic)
        return infos[turn % len(infos)].partition


def make_partitioner(value: object) -> Partitioner | None:
    """The partitioner that `partitioner.class` means: an object, a class, or a name; None for the built-in rule."""
    if value is None or value is DefaultPartitioner or type(value) is DefaultPartitioner:
        return None
    if isinstance(value, str):
        return _by_name(value)
    made = value() if isinstance(value, type) else value
    if not isinstance(made, Partitioner):
        raise ConfigError(
            f"partitioner.class: {value!r} has no method partition(topic, key, key_bytes, value, value_bytes, cluster)",
            name="partitioner.class",
        )
    return made


def _by_name(name: str) -> Partitioner | None:
    try:
        alias = java_alias("partitioner", name)
    except ValueError as error:
        raise ConfigError(f"partitioner.class: {error}", name="partitioner.class") from None
    # Java's two sticky classes were made one with its built-in rule.
    return RoundRobinPartitioner() if alias == "round_robin" else None
