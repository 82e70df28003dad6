"""The sticky division for members that keep their partitions during a rebalance (KIP-429)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from kclient.common.cluster import Cluster
from kclient.common.offsets import ConsumerGroupMetadata
from kclient.consumer.assignor.base import (
    Assignment,
    ConsumerPartitionAssignor,
    RebalanceProtocol,
    Subscription,
)
from kclient.consumer.assignor.internals import user_data
from kclient.consumer.assignor.internals.sticky_assignment import assign_sticky
from kclient.consumer.assignor.internals.user_data import NO_GENERATION, MemberData


class CooperativeStickyAssignor(ConsumerPartitionAssignor):
    """Divides partitions as `StickyAssignor` does, but in two steps: a partition that goes from one member to another
    is left out at first, and assigned in the rebalance that follows when its owner has given it up.

    So members go on reading what does not move. It works in eager groups as well.
    """

    NAME: ClassVar[str] = "cooperative-sticky"

    def __init__(self) -> None:
        self._generation = NO_GENERATION

    @property
    def supported_protocols(self) -> tuple[RebalanceProtocol, ...]:
        return RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER

    def subscription_user_data(self, topics: frozenset[str]) -> bytes | None:  # noqa: ARG002 - the same for all
        return user_data.encode_cooperative(self._generation)

    def assign(self, cluster: Cluster, subscriptions: Mapping[str, Subscription]) -> dict[str, Assignment]:
        claims = {member_id: _claim(given) for member_id, given in subscriptions.items()}
        made = assign_sticky(cluster, subscriptions, claims)
        return {
            member_id: Assignment(tuple(tp for tp in partitions if tp not in made.transferring))
            for member_id, partitions in made.assigned.items()
        }

    def on_assignment(self, assignment: Assignment, metadata: ConsumerGroupMetadata) -> None:  # noqa: ARG002
        self._generation = metadata.generation_id


def _claim(given: Subscription) -> MemberData:
    generation = given.generation_id
    if generation < 0:  # a subscription before KIP-792
        generation = user_data.decode_cooperative(given.user_data)
    return MemberData(given.owned_partitions, generation)
