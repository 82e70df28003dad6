"""One picture of the cluster, by ids as brokers send it, and how a newer one is merged into it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import attrs

from kclient.common.cluster import Cluster, TopicDescriptions
from kclient.common.node import Node
from kclient.common.topic_partition import PartitionInfo, TopicPartition
from kclient.common.uuid import Uuid


@attrs.frozen
class PartitionMetadata:
    """A partition as a broker described it; brokers are ids, because their addresses may arrive by another answer."""

    leader_id: int
    leader_epoch: int | None = None
    replica_ids: tuple[int, ...] = ()
    in_sync_replica_ids: tuple[int, ...] = ()
    offline_replica_ids: tuple[int, ...] = ()


@attrs.frozen
class LeaderAndEpoch:
    """The leader of a partition and its epoch, None where not known."""

    leader: Node | None
    epoch: int | None


NO_LEADER = LeaderAndEpoch(None, None)


@attrs.frozen(eq=False)
class MetadataSnapshot:
    """Immutable, so any thread may read it."""

    cluster_id: str | None
    nodes: Mapping[int, Node]
    partitions: Mapping[TopicPartition, PartitionMetadata]
    topic_ids: Mapping[str, Uuid]
    controller_id: int = -1
    internal_topics: frozenset[str] = frozenset()
    invalid_topics: frozenset[str] = frozenset()
    unauthorized_topics: frozenset[str] = frozenset()
    missing_topics: frozenset[str] = frozenset()
    _cluster: Cluster | None = attrs.field(default=None, init=False)

    @property
    def cluster(self) -> Cluster:
        """The same picture for the public API."""
        cluster = self._cluster
        if cluster is None:
            cluster = self._make_cluster()
            # Made when it is asked for: snapshots on the way to the next one are many.
            object.__setattr__(self, "_cluster", cluster)
        return cluster

    def _make_cluster(self) -> Cluster:
        nodes = self.nodes
        by_topic: dict[str, list[TopicPartition]] = {}
        for tp in self.partitions:
            by_topic.setdefault(tp.topic, []).append(tp)

        def known(ids: Iterable[int]) -> tuple[Node, ...]:
            # A replica on a broker that is down has no address; its id alone still tells where it is.
            return tuple(nodes.get(i) or Node(i, "", -1) for i in ids)

        def describe(topic: str) -> Iterator[PartitionInfo]:
            for tp in by_topic[topic]:
                p = self.partitions[tp]
                yield PartitionInfo(
                    tp.topic,
                    tp.partition,
                    self._broker(p.leader_id),
                    known(p.replica_ids),
                    known(p.in_sync_replica_ids),
                    known(p.offline_replica_ids),
                    p.leader_epoch,
                )

        return Cluster(
            self.cluster_id,
            nodes.values(),
            TopicDescriptions(by_topic, describe),
            controller=self._broker(self.controller_id),
            internal_topics=self.internal_topics,
            invalid_topics=self.invalid_topics,
            unauthorized_topics=self.unauthorized_topics,
            topic_ids=self.topic_ids,
        )

    @classmethod
    def bootstrap(cls, addresses: Iterable[tuple[str, int]]) -> MetadataSnapshot:
        """Brokers known by address alone; their ids are negative."""
        nodes = {-i: Node(-i, host, port) for i, (host, port) in enumerate(addresses, 1)}
        return cls(None, nodes, {}, {})

    def merged_under(
        self, newer: MetadataSnapshot, answered: Iterable[str], retain: Callable[[str], bool]
    ) -> MetadataSnapshot:
        """`newer`, and of this picture those topics that the newer answer did not speak of and `retain`
        wants.
        """
        gone = frozenset(answered)
        kept = {
            topic: retain(topic)
            for topic in {tp.topic for tp in self.partitions} | set(self.topic_ids)
            if topic not in gone
        }

        def stays(topic: str) -> bool:
            return topic not in gone and kept.get(topic, False)

        return attrs.evolve(
            newer,
            partitions={
                **{tp: p for tp, p in self.partitions.items() if stays(tp.topic)},
                **newer.partitions,
            },
            topic_ids={**{t: i for t, i in self.topic_ids.items() if stays(t)}, **newer.topic_ids},
            internal_topics=newer.internal_topics | {t for t in self.internal_topics if stays(t)},
            invalid_topics=newer.invalid_topics | (self.invalid_topics - gone),
            unauthorized_topics=newer.unauthorized_topics | (self.unauthorized_topics - gone),
            missing_topics=newer.missing_topics | (self.missing_topics - gone),
        )

    def leader_and_epoch(self, tp: TopicPartition) -> LeaderAndEpoch:
        """The leader of `tp`; NO_LEADER if the partition is unknown or has none."""
        partition = self.partitions.get(tp)
        if partition is None:
            return NO_LEADER
        return LeaderAndEpoch(self._broker(partition.leader_id), partition.leader_epoch)

    def _broker(self, broker_id: int) -> Node | None:
        # "None" is -1 to a broker, and the first bootstrap server to a client that begins again.
        return self.nodes.get(broker_id) if broker_id >= 0 else None
