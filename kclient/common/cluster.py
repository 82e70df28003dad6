"""Cluster: an immutable picture of brokers, topics and partitions."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping

from kclient.common.node import Node
from kclient.common.topic_partition import PartitionInfo, TopicPartition
from kclient.common.uuid import Uuid

PROPAGATION_MS = 3000
"""The time after which every broker has heard of a topic, or of partitions, that were created."""


class TopicDescriptions:
    """The partitions of topics, described when somebody asks for a topic: of many a client needs few. Thread-safe.

    `describe` gives those of one of the `topics`, in any order; it is asked once, or by several threads at once.
    """

    __slots__ = ("_describe", "_known", "topics")

    def __init__(self, topics: Collection[str], describe: Callable[[str], Iterable[PartitionInfo]]) -> None:
        self.topics = topics
        self._describe = describe
        self._known: dict[str, tuple[PartitionInfo, ...]] = {}

    def of(self, topic: str) -> tuple[PartitionInfo, ...]:
        """Return the partitions of a topic in order, none for one that is unknown."""
        infos = self._known.get(topic)
        if infos is None:
            if topic not in self.topics:
                return ()
            infos = tuple(sorted(self._describe(topic), key=lambda info: info.partition))
            self._known[topic] = infos
        return infos


class Cluster:
    """Brokers, topics and partitions as of one metadata answer. Immutable, so any thread may read it."""

    __slots__ = (
        "_available",
        "_described",
        "_nodes",
        "_topic_ids",
        "_topic_names",
        "cluster_id",
        "controller",
        "internal_topics",
        "invalid_topics",
        "unauthorized_topics",
    )

    def __init__(
        self,
        cluster_id: str | None = None,
        nodes: Iterable[Node] = (),
        partitions: Iterable[PartitionInfo] | TopicDescriptions = (),
        *,
        controller: Node | None = None,
        internal_topics: Iterable[str] = (),
        invalid_topics: Iterable[str] = (),
        unauthorized_topics: Iterable[str] = (),
        topic_ids: Mapping[str, Uuid] | None = None,
    ) -> None:
        self.cluster_id = cluster_id
        self.controller = controller
        self.internal_topics = frozenset(internal_topics)
        self.invalid_topics = frozenset(invalid_topics)
        self.unauthorized_topics = frozenset(unauthorized_topics)
        self._nodes = {node.id: node for node in nodes}
        self._topic_ids = dict(topic_ids or {})
        self._topic_names = {uuid: name for name, uuid in self._topic_ids.items()}
        if not isinstance(partitions, TopicDescriptions):
            by_topic: dict[str, list[PartitionInfo]] = {}
            for info in partitions:
                by_topic.setdefault(info.topic, []).append(info)
            partitions = TopicDescriptions(by_topic, by_topic.__getitem__)
        self._described = partitions
        self._available: dict[str, tuple[PartitionInfo, ...]] = {}

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Every known broker."""
        return tuple(self._nodes.values())

    @property
    def topics(self) -> frozenset[str]:
        """Every topic with known partitions."""
        return frozenset(self._described.topics)

    def node_by_id(self, node_id: int) -> Node | None:
        """The broker with this id, None if unknown."""
        return self._nodes.get(node_id)

    def partition(self, tp: TopicPartition) -> PartitionInfo | None:
        """Return the metadata of `tp`, None if it is unknown."""
        infos = self._described.of(tp.topic)
        at = tp.partition
        if not 0 <= at < len(infos) or infos[at].partition != at:  # numbers are missing
            at = bisect_left(infos, at, key=lambda info: info.partition)
        return infos[at] if at < len(infos) and infos[at].partition == tp.partition else None

    def leader_for(self, tp: TopicPartition) -> Node | None:
        """The leader of `tp`, None if there is none now or the partition is unknown."""
        info = self.partition(tp)
        return None if info is None else info.leader

    def partitions_for_topic(self, topic: str) -> tuple[PartitionInfo, ...]:
        """All partitions of `topic` in order, empty if the topic is unknown."""
        return self._described.of(topic)

    def available_partitions_for_topic(self, topic: str) -> tuple[PartitionInfo, ...]:
        """The partitions of `topic` that have a leader."""
        available = self._available.get(topic)
        if available is None:
            available = tuple(info for info in self._described.of(topic) if info.leader is not None)
            self._available[topic] = available
        return available

    def partition_count(self, topic: str) -> int | None:
        """Return the number of partitions of `topic`, None if it is unknown."""
        return len(self._described.of(topic)) or None

    def topic_id(self, topic: str) -> Uuid | None:
        """The identifier of `topic` (KIP-516), None where the brokers know none."""
        return self._topic_ids.get(topic)

    def topic_name(self, topic_id: Uuid) -> str | None:
        """The name of the topic with this identifier."""
        return self._topic_names.get(topic_id)

    def __repr__(self) -> str:
        return (
            f"Cluster(id={self.cluster_id}, nodes={len(self._nodes)}, topics={len(self._described.topics)})"
        )
