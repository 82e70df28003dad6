"""Cooperative rebalancing (KIP-429): which protocol is in force, and what an assignment must keep to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kclient.common.topic_partition import TopicPartition
from kclient.consumer.assignor.base import (
    Assignment,
    ConsumerPartitionAssignor,
    RebalanceProtocol,
    Subscription,
)
from kclient.errors import ConfigError, KafkaError


def rebalance_protocol(assignors: Iterable[ConsumerPartitionAssignor]) -> RebalanceProtocol:
    """Return the protocol that all of `assignors` support, the more cooperative one if there are two.

    Raises ConfigError if there is none.
    """
    supported = [frozenset(each.supported_protocols) for each in assignors]
    common = frozenset(RebalanceProtocol).intersection(*supported)
    if not common:
        name = "partition.assignment.strategy"
        raise ConfigError(f"{name}: its assignors have no rebalance protocol in common.", name=name)
    return max(common)


def check_nothing_is_taken(
    assignor: str, subscriptions: Mapping[str, Subscription], shares: Mapping[str, Assignment]
) -> None:
    """Raise KafkaError if a partition that a member owns is given to another one at once.

    Its owner has to give it up first, and only the next rebalance gives it away.
    """
    added: set[TopicPartition] = set()
    removed: set[TopicPartition] = set()
    for member_id, share in shares.items():
        owned = frozenset(subscriptions[member_id].owned_partitions)
        assigned = frozenset(share.partitions)
        added |= assigned - owned
        removed |= owned - assigned
    taken = sorted(added & removed)
    if taken:
        names = ", ".join(map(str, taken))
        raise KafkaError(
            f"The assignor {assignor!r} supports cooperative rebalancing, but gave partitions that a member owns "
            f"to another one without having it give them up first: {names}"
        )
