"""The way of partitions from member to member while a division is being balanced."""

from __future__ import annotations

from kclient.common.topic_partition import TopicPartition


class PartitionMovements:
    """From whom and to whom partitions have moved, so that two members do not exchange partitions of one topic."""

    __slots__ = ("_by_topic", "_of")

    def __init__(self) -> None:
        self._of: dict[TopicPartition, tuple[str, str]] = {}
        self._by_topic: dict[str, dict[tuple[str, str], set[TopicPartition]]] = {}

    def add(self, tp: TopicPartition, old: str, new: str) -> None:
        """Take note that `tp` moves from `old` to `new`."""
        before = self._of.pop(tp, None)
        if before is not None:
            moved = self._by_topic[tp.topic]
            moved[before].discard(tp)
            if not moved[before]:
                del moved[before]
            old = before[0]
        if old != new:  # else it is back
            self._of[tp] = (old, new)
            self._by_topic.setdefault(tp.topic, {}).setdefault((old, new), set()).add(tp)

    def to_take_back(self, tp: TopicPartition, old: str, new: str) -> TopicPartition | None:
        """The partition to move in place of `tp`: one of its topic that came the other way."""
        before = self._of.get(tp)
        if before is not None:
            old = before[0]
        return min(self._by_topic.get(tp.topic, {}).get((new, old), ()), default=None)
