"""RecoveredTopic: a topic as a start of the broker finds it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import attrs

from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid


@attrs.frozen
class RecoveredTopic:
    """One topic. Immutable. `directories` has the id of each partition's log directory, zero while it is in none.

    `leader_epochs` are the last ones of another cluster, if it comes from one, and `elsewhere` the number of partitions
    that other brokers have and this one has not.
    """

    name: str
    id: Uuid
    partition_count: int
    configs: Mapping[str, str] = MappingProxyType({})
    directories: tuple[Uuid, ...] = ()
    leader_epochs: tuple[int, ...] = ()
    elsewhere: int = 0

    def topic_partitions(self) -> list[TopicPartition]:
        """All partitions in order."""
        return [TopicPartition(self.name, number) for number in range(self.partition_count)]
