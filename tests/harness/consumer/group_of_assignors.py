"""A classic group without brokers: assignors, what their members own, and rebalances."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from kclient.common.cluster import Cluster
from kclient.common.node import Node
from kclient.common.offsets import ConsumerGroupMetadata
from kclient.common.topic_partition import PartitionInfo, TopicPartition
from kclient.consumer.assignor import Assignment, ConsumerPartitionAssignor, Subscription
from kclient.consumer.internals.coordinator import group_protocol


def cluster_of(topics: Mapping[str, int | list[str]]) -> Cluster:
    """Topics with so many partitions, or with the racks of the replicas of each, a letter a replica."""
    nodes: dict[str, Node] = {}
    infos = []
    for topic, given in topics.items():
        for partition, racks in enumerate([""] * given if isinstance(given, int) else given):
            on = tuple(nodes.setdefault(rack, Node(ord(rack), "h", 1, rack)) for rack in racks)
            infos.append(PartitionInfo(topic, partition, on[0] if on else None, on, on))
    return Cluster("id", nodes.values(), infos)


@attrs.define
class Member:
    """A member of the group, as far as assignors see it."""

    assignor: ConsumerPartitionAssignor
    topics: frozenset[str]
    rack: str | None = None
    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1

    def subscription(self) -> bytes:
        """The bytes with which it joins."""
        return group_protocol.encode_subscription(
            Subscription(
                tuple(self.topics),
                self.assignor.subscription_user_data(self.topics),
                self.owned if self.cooperative else (),
                None,
                self.generation,
                self.rack,
            )
        )

    @property
    def cooperative(self) -> bool:
        """True if it keeps its partitions while it joins."""
        return len(self.assignor.supported_protocols) > 1


@attrs.define
class Group:
    """Members, and the last generation of their group."""

    assignor: type[ConsumerPartitionAssignor]
    members: dict[str, Member] = attrs.field(factory=dict)
    generation: int = 0
    _away: dict[str, ConsumerPartitionAssignor] = attrs.field(factory=dict, init=False)

    def join(self, member_id: str, topics: Iterable[str], rack: str | None = None) -> None:
        """Add a member; it takes part in the next rebalance. One that comes back has the assignor that it had."""
        assignor = self._away.pop(member_id, None) or self.assignor()
        self.members[member_id] = Member(assignor, frozenset(topics), rack)

    def leave(self, member_id: str) -> None:
        """Remove a member, and what it owns."""
        self._away[member_id] = self.members.pop(member_id).assignor

    def rebalance(self, cluster: Cluster) -> dict[str, tuple[TopicPartition, ...]]:
        """Assign, through the bytes of the protocol, and tell every member its share, which it owns from then on."""
        self.generation += 1
        subscriptions = {
            member_id: group_protocol.decode_subscription(member.subscription())
            for member_id, member in self.members.items()
        }
        leader = next(iter(self.members.values())).assignor
        shares = leader.assign(cluster, subscriptions)
        made = {member_id: group_protocol.encode_assignment(share) for member_id, share in shares.items()}
        assert made.keys() == self.members.keys()
        for member_id, member in self.members.items():
            given: Assignment = group_protocol.decode_assignment(made[member_id])
            member.assignor.on_assignment(given, ConsumerGroupMetadata("g", self.generation, member_id))
            member.owned = given.partitions
            member.generation = self.generation
        return {member_id: member.owned for member_id, member in self.members.items()}
