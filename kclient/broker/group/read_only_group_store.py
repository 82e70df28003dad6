"""ReadOnlyGroupStore: groups of a directory that stays as it is."""

from __future__ import annotations

from collections.abc import Iterable

from kclient.broker.group.group_store import GROUP_KEY_TYPE, Entry, GroupStore
from kclient.broker.metadata.topic_names import OFFSETS_TOPIC
from kclient.common.topic_partition import TopicPartition
from kclient.errors import PolicyViolationError


class ReadOnlyGroupStore(GroupStore):
    """Reads the offsets topic, and remembers who is in a group for as long as the broker runs. Thread-safe.

    Members may come and go: nobody has to know of them afterwards. Offsets are refused.
    """

    def create_topic(self) -> None:
        """Leave the directories as they are."""

    def partition_for(self, group_id: str) -> TopicPartition:
        if self._controller.cache.topic(OFFSETS_TOPIC) is None:
            return TopicPartition(OFFSETS_TOPIC, 0)  # a name, under which nothing is read or written
        return super().partition_for(group_id)

    def write(self, group_id: str, entries: Iterable[Entry]) -> None:
        """Accept what is said of members. Raises PolicyViolationError for all else."""
        for key, value in entries:
            if value is None or int.from_bytes(key[:2], "big") != GROUP_KEY_TYPE:
                raise PolicyViolationError(
                    f"The broker's directories were opened read-only (kclient.read.only): offsets of group {group_id} "
                    "cannot be changed"
                )
