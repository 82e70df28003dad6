"""ShareAssignment: the partitions that the group has this member read, along with others."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from kclient.client.metadata import Metadata
from kclient.common.topic_id_partition import TopicIdPartition
from kclient.common.topic_partition import TopicPartition
from kclient.protocol.messages.share_group_heartbeat import TopicPartitions


@attrs.define(eq=False)
class ShareAssignment:
    """The partitions that the coordinator has assigned, by topic ids, and by name as far as metadata knows.

    Changed by the I/O thread; `partitions` may be read by any, and is never changed but replaced.
    """

    _assigned: list[TopicPartitions] = attrs.field(factory=list, init=False)
    partitions: frozenset[TopicIdPartition] = attrs.field(default=frozenset(), init=False)
    unresolved: bool = attrs.field(default=False, init=False)
    """True if metadata does not have the name of every topic yet."""

    @property
    def by_partition(self) -> frozenset[TopicPartition]:
        """The partitions by name."""
        return frozenset(each.topic_partition for each in self.partitions)

    def take(self, assigned: Iterable[TopicPartitions], metadata: Metadata) -> None:
        """Have exactly what the coordinator says."""
        self._assigned = list(assigned)
        self.resolve(metadata)

    def clear(self) -> None:
        """Have nothing."""
        self._assigned = []
        self.partitions = frozenset()
        self.unresolved = False

    def resolve(self, metadata: Metadata) -> None:
        """Look the names of the topics up once more."""
        found = set()
        self.unresolved = False
        for topic in self._assigned:
            name = metadata.topic_name(topic.topic_id)
            if name is None:
                self.unresolved = True
                continue
            found |= {TopicIdPartition(topic.topic_id, name, number) for number in topic.partitions}
        if found != self.partitions:
            self.partitions = frozenset(found)
