"""All partitions of all topics, dealt out one by one."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import ClassVar

from kclient.common.cluster import Cluster
from kclient.common.topic_partition import TopicPartition
from kclient.consumer.assignor.base import (
    Assignment,
    ConsumerPartitionAssignor,
    MemberInfo,
    Subscription,
    partitions_of,
)


class RoundRobinAssignor(ConsumerPartitionAssignor):
    """Lays out all partitions by topic and gives them to the sorted members in turn, passing over members that are
    not subscribed to the partition's topic.

    With equal subscriptions no member has more than one partition more than another.
    """

    NAME: ClassVar[str] = "roundrobin"

    def assign(self, cluster: Cluster, subscriptions: Mapping[str, Subscription]) -> dict[str, Assignment]:
        assigned: dict[str, list[TopicPartition]] = {member_id: [] for member_id in subscriptions}
        topics_of = {member_id: frozenset(given.topics) for member_id, given in subscriptions.items()}
        members = sorted(
            (MemberInfo(member_id, given.group_instance_id) for member_id, given in subscriptions.items()),
            key=lambda member: member.sort_key,
        )
        turns = cycle(members)
        for topic in sorted(frozenset[str]().union(*topics_of.values())):
            for tp in partitions_of(topic, cluster.partition_count(topic) or 0):
                member = next(turns)
                while topic not in topics_of[member.member_id]:
                    member = next(turns)
                assigned[member.member_id].append(tp)
        return {member_id: Assignment(tuple(partitions)) for member_id, partitions in assigned.items()}
