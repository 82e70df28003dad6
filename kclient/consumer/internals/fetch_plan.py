"""FetchPlan: the partitions to fetch from each broker, and where that has changed since the last fetch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import attrs

from kclient.common.node import Node
from kclient.common.topic_partition import TopicPartition
from kclient.consumer.internals.fetch_session import WantedPartition


@attrs.define(eq=False)
class NodePlan:
    """The partitions to fetch from one broker."""

    node: Node
    wanted: dict[TopicPartition, WantedPartition] = attrs.Factory(dict)
    full: set[TopicPartition] = attrs.Factory(set)
    """Partitions of which enough is buffered."""
    changed: set[TopicPartition] | None = None
    """Those that are wanted otherwise than in the last fetch; None: it was of others altogether."""

    def put(self, tp: TopicPartition, want: WantedPartition | None) -> None:
        """Fetch `tp` as `want` says; with None enough of it is buffered."""
        if want is None:
            self.full.add(tp)
        else:
            self.full.discard(tp)
        if self.wanted.get(tp) == want:
            return
        if want is None:
            del self.wanted[tp]
        else:
            self.wanted[tp] = want
        self._note(tp)

    def remove(self, tp: TopicPartition) -> None:
        """Fetch no more of `tp`."""
        self.full.discard(tp)
        if self.wanted.pop(tp, None) is not None:
            self._note(tp)

    def _note(self, tp: TopicPartition) -> None:
        if self.changed is not None:
            self.changed.add(tp)

    def fetched(self, partitions: Mapping[TopicPartition, WantedPartition]) -> None:
        """A fetch of `partitions` is under way: of all that is wanted, or of a part."""
        self.changed = set() if partitions is self.wanted else None


class FetchPlan:
    """The plans of all brokers. Belongs to the I/O thread."""

    def __init__(self) -> None:
        self._by_node: dict[int, NodePlan] = {}
        self._by_partition: dict[TopicPartition, NodePlan] = {}

    def put(self, tp: TopicPartition, node: Node, want: WantedPartition | None) -> None:
        """Fetch `tp` from `node` alone, as `want` says; with None enough of it is buffered."""
        plan = self._by_node.get(node.id)
        if plan is None:
            plan = self._by_node[node.id] = NodePlan(node)
        plan.node = node
        before = self._by_partition.get(tp)
        if before is not plan:
            if before is not None:
                before.remove(tp)
            self._by_partition[tp] = plan
        plan.put(tp, want)

    def remove(self, tp: TopicPartition) -> None:
        """Fetch no more of `tp`."""
        plan = self._by_partition.pop(tp, None)
        if plan is not None:
            plan.remove(tp)

    def without(self, busy: Iterable[int]) -> Iterator[NodePlan]:
        """The plans of brokers that are not `busy`."""
        return (plan for node_id, plan in self._by_node.items() if node_id not in busy)
