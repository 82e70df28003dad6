"""The assignment that the coordinator wants a member to have, and how far the member has it (KIP-848)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import attrs

from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid

PartitionsById: TypeAlias = Mapping[Uuid, frozenset[int]]


@attrs.frozen
class LocalAssignment:
    """Partitions by topic id, as of one `version` of what the coordinator wants. Immutable.

    Versions are the member's own and never sent. They make an assignment differ from an equal one of before, so that
    it is acknowledged again.
    """

    version: int = -1
    partitions: PartitionsById = attrs.field(factory=dict)

    @property
    def is_none(self) -> bool:
        """True before the first assignment."""
        return self.version < 0


NO_ASSIGNMENT = LocalAssignment()


class TargetAssignment:
    """The assignment that is wanted and the one that the member has, and the names of topics. For the I/O thread."""

    def __init__(self, topic_name: Callable[[Uuid], str | None]) -> None:
        self._topic_name = topic_name
        self._names: dict[Uuid, str] = {}
        self.wanted = NO_ASSIGNMENT
        """The coordinator's last word."""
        self.current = NO_ASSIGNMENT
        """The part of it that the application has taken."""

    @property
    def reconciled(self) -> bool:
        """True if the member has all that is wanted, as of the last word."""
        return self.current == self.wanted

    def forget(self) -> None:
        """Begin without any assignment."""
        self.wanted = self.current = NO_ASSIGNMENT
        self._names.clear()

    def want(self, partitions: PartitionsById) -> None:
        """The coordinator wants the member to have exactly these."""
        if self.wanted.is_none or partitions != self.wanted.partitions:
            self.wanted = LocalAssignment(self.wanted.version + 1, partitions)

    def resolve(self) -> tuple[LocalAssignment, frozenset[TopicPartition], frozenset[Uuid]]:
        """Return the part of what is wanted whose topics are known, its partitions by name, and the unknown topics."""
        known: dict[Uuid, frozenset[int]] = {}
        named: set[TopicPartition] = set()
        unknown: set[Uuid] = set()
        for topic_id, numbers in self.wanted.partitions.items():
            # A topic that the metadata has dropped keeps its name for as long as the member has it.
            name = self._topic_name(topic_id) or self._names.get(topic_id)
            if name is None:
                unknown.add(topic_id)
                continue
            self._names[topic_id] = name
            known[topic_id] = numbers
            named.update(TopicPartition(name, number) for number in numbers)
        return LocalAssignment(self.wanted.version, known), frozenset(named), frozenset(unknown)

    def take(self, assignment: LocalAssignment) -> None:
        """The application has taken `assignment`."""
        self.current = assignment
        self._names = {
            topic_id: name for topic_id, name in self._names.items() if topic_id in assignment.partitions
        }


def by_id(topics: Iterable[tuple[Uuid, Iterable[int]]]) -> PartitionsById:
    """Return the partitions of `topics`, without what no partition can be."""
    found: dict[Uuid, frozenset[int]] = {}
    for topic_id, numbers in topics:
        found[topic_id] = found.get(topic_id, frozenset()).union(number for number in numbers if number >= 0)
    return {topic_id: numbers for topic_id, numbers in found.items() if numbers}
