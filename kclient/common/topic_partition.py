"""TopicPartition, and where a partition lives."""

from __future__ import annotations

import attrs

from kclient.common.node import Node


@attrs.frozen(order=True, cache_hash=True)
class TopicPartition:
    """One partition of a topic. Immutable; sorts by topic, then partition."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@attrs.frozen
class PartitionInfo:
    """What the cluster's metadata says of a partition. Immutable."""

    topic: str
    partition: int
    leader: Node | None
    replicas: tuple[Node, ...] = ()
    in_sync_replicas: tuple[Node, ...] = ()
    offline_replicas: tuple[Node, ...] = ()
    leader_epoch: int | None = None
