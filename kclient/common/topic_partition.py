"""TopicPartition, and where a partition lives."""

from __future__ import annotations

from typing import NamedTuple

import attrs

from kclient.common.node import Node


class TopicPartition(NamedTuple):
    """One partition of a topic. Immutable; sorts by topic, then partition.

    A tuple: every batch and every fetch is looked up by it many times, and hash and equality of a tuple are C's.
    """

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@attrs.frozen
class PartitionInfo:
    """The metadata of a partition. Immutable."""

    topic: str
    partition: int
    leader: Node | None
    replicas: tuple[Node, ...] = ()
    in_sync_replicas: tuple[Node, ...] = ()
    offline_replicas: tuple[Node, ...] = ()
    leader_epoch: int | None = None
