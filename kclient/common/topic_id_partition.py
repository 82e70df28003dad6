"""TopicIdPartition: a partition of one certain topic, whatever comes to bear its name later."""

from __future__ import annotations

from typing import NamedTuple

from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid


class TopicIdPartition(NamedTuple):
    """One partition of the topic with an id, and the name that the topic has. Immutable."""

    topic_id: Uuid
    topic: str
    partition: int

    @property
    def topic_partition(self) -> TopicPartition:
        """The same by name."""
        return TopicPartition(self.topic, self.partition)

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
