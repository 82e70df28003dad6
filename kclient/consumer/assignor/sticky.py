"""An even division in which members keep what they had (KIP-54)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from kclient.common.cluster import Cluster
from kclient.common.offsets import ConsumerGroupMetadata
from kclient.consumer.assignor.base import Assignment, ConsumerPartitionAssignor, Subscription
from kclient.consumer.assignor.internals import user_data
from kclient.consumer.assignor.internals.sticky_assignment import assign_sticky
from kclient.consumer.assignor.internals.user_data import MemberData


class StickyAssignor(ConsumerPartitionAssignor):
    """Divides partitions as evenly as the subscriptions allow, and moves as few as that takes.

    Either no member has more than one partition more than another, or no partition of the one can go to the other,
    because it is not subscribed to it. If members and replicas name racks, partitions stay with or go to members
    near to them where that costs no evenness (KIP-881). The members give up all their partitions during a rebalance,
    and tell the leader by their user data what they had (KIP-341); `CooperativeStickyAssignor` lets them keep what
    does not move.
    """

    NAME: ClassVar[str] = "sticky"

    def __init__(self) -> None:
        self._last: MemberData | None = None

    def subscription_user_data(self, topics: frozenset[str]) -> bytes | None:  # noqa: ARG002 - all of them count
        return None if self._last is None else user_data.encode_sticky(self._last)

    def assign(self, cluster: Cluster, subscriptions: Mapping[str, Subscription]) -> dict[str, Assignment]:
        claims = {
            member_id: user_data.decode_sticky(given.user_data) for member_id, given in subscriptions.items()
        }
        made = assign_sticky(cluster, subscriptions, claims)
        return {member_id: Assignment(tuple(partitions)) for member_id, partitions in made.assigned.items()}

    def on_assignment(self, assignment: Assignment, metadata: ConsumerGroupMetadata) -> None:
        self._last = MemberData(assignment.partitions, metadata.generation_id)
