"""The division of the sticky assignors: even first, then as it was (KIP-54)."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from kclient.common.cluster import Cluster
from kclient.common.topic_partition import TopicPartition
from kclient.consumer.assignor.base import Subscription
from kclient.consumer.assignor.internals.constrained import ConstrainedAssignment
from kclient.consumer.assignor.internals.general import GeneralAssignment
from kclient.consumer.assignor.internals.ownership import Ownership
from kclient.consumer.assignor.internals.racks import Racks
from kclient.consumer.assignor.internals.user_data import MemberData


@attrs.frozen
class StickyAssignment:
    """A division of partitions among members, and what another member has to give up before it takes effect."""

    assigned: dict[str, list[TopicPartition]]
    transferring: frozenset[TopicPartition]


def assign_sticky(
    cluster: Cluster, subscriptions: Mapping[str, Subscription], claims: Mapping[str, MemberData]
) -> StickyAssignment:
    """Divide the partitions of the members' topics; `claims` are the partitions that each says it had."""
    if not subscriptions:
        return StickyAssignment({}, frozenset())
    subscribed = [frozenset(given.topics) for given in subscriptions.values()]
    infos = {
        topic: cluster.partitions_for_topic(topic) for topic in sorted(frozenset[str]().union(*subscribed))
    }
    topics = {
        topic: [TopicPartition(topic, info.partition) for info in found]
        for topic, found in infos.items()
        if found
    }
    partitions = [tp for found in topics.values() for tp in found]
    racks = Racks([info for found in infos.values() for info in found], subscriptions)
    ownership = Ownership(claims, frozenset(partitions))
    if all(each == subscribed[0] for each in subscribed):
        assigned = ConstrainedAssignment(partitions, racks, ownership).assigned
        return StickyAssignment(assigned, _not_owned(assigned, ownership))
    assigned = GeneralAssignment(topics, subscriptions, racks, ownership).assigned
    return StickyAssignment(assigned, _taken_over(assigned, claims))


# Java has these two rules, and they differ only where claims do not agree.


def _not_owned(
    assigned: Mapping[str, list[TopicPartition]], ownership: Ownership
) -> frozenset[TopicPartition]:
    """The partitions that belong to another member than they are assigned to, or may do so."""
    return ownership.disputed.union(
        tp
        for member_id, partitions in assigned.items()
        for tp in partitions
        if ownership.owner_of.get(tp, member_id) != member_id
    )


def _taken_over(
    assigned: Mapping[str, list[TopicPartition]], claims: Mapping[str, MemberData]
) -> frozenset[TopicPartition]:
    """The partitions that are claimed by others, and not by the member that they are assigned to."""
    claimed = frozenset(tp for claim in claims.values() for tp in claim.partitions)
    return frozenset(
        tp
        for member_id, partitions in assigned.items()
        for tp in claimed.intersection(partitions).difference(claims[member_id].partitions)
    )
