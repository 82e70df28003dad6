"""Cluster: an immutable picture of brokers, topics and partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kclient.common.node import Node
from kclient.common.topic_partition import PartitionInfo, TopicPartition
from kclient.common.uuid import Uuid


class Cluster:
    """Brokers, topics and partitions as of one metadata answer. Immutable, so any thread may read it."""

    __slots__ = (
        "_available",
        "_by_topic",
        "_nodes",
        "_partitions",
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
        partitions: Iterable[PartitionInfo] = (),
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
        self._partitions: dict[TopicPartition, PartitionInfo] = {}
        by_topic: dict[str, list[PartitionInfo]] = {}
        for info in partitions:
            self._partitions[TopicPartition(info.topic, info.partition)] = info
            by_topic.setdefault(info.topic, []).append(info)
        self._by_topic = {
            topic: tuple(sorted(infos, key=lambda info: info.partition)) for topic, infos in by_topic.items()
        }
        self._available = {
            topic: tuple(info for info in infos if info.leader is not None)
            for topic, infos in self._by_topic.items()
        }

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Every known broker."""
        return tuple(self._nodes.values())

    @property
    def topics(self) -> frozenset[str]:
        """Every topic with known partitions."""
        return frozenset(self._by_topic)

    def node_by_id(self, node_id: int) -> Node | None:
        """The broker with this id, None if unknown."""
        return self._nodes.get(node_id)

    def partition(self, tp: TopicPartition) -> PartitionInfo | None:
        """Return the metadata of `tp`, None if it is unknown."""
        return self._partitions.get(tp)

    def leader_for(self, tp: TopicPartition) -> Node | None:
        """The leader of `tp`, None if there is none now or the partition is unknown."""
        info = self._partitions.get(tp)
        return None if info is None else info.leader

    def partitions_for_topic(self, topic: str) -> tuple[PartitionInfo, ...]:
        """All partitions of `topic` in order, empty if the topic is unknown."""
        return self._by_topic.get(topic, ())

    def available_partitions_for_topic(self, topic: str) -> tuple[PartitionInfo, ...]:
        """The partitions of `topic` that have a leader."""
        return self._available.get(topic, ())

    def partition_count(self, topic: str) -> int | None:
        """Return the number of partitions of `topic`, None if it is unknown."""
        infos = self._by_topic.get(topic)
        return None if infos is None else len(infos)

    def topic_id(self, topic: str) -> Uuid | None:
        """The identifier of `topic` (KIP-516), None where the brokers know none."""
        return self._topic_ids.get(topic)

    def topic_name(self, topic_id: Uuid) -> str | None:
        """The name of the topic with this identifier."""
        return self._topic_names.get(topic_id)

    def __repr__(self) -> str:
        return f"Cluster(id={self.cluster_id}, nodes={len(self._nodes)}, topics={len(self._by_topic)})"
