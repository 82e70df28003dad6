"""The contract of client-side assignors, which run on the leader of a classic group (KIP-54)."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from enum import IntEnum
from typing import ClassVar

import attrs

from kclient.common.cluster import Cluster
from kclient.common.offsets import ConsumerGroupMetadata
from kclient.common.topic_partition import TopicPartition


@attrs.frozen
class Subscription:
    """The information that one member gave the group when it joined. Immutable."""

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned_partitions: tuple[TopicPartition, ...] = ()
    group_instance_id: str | None = None
    generation_id: int = -1
    rack_id: str | None = None


@attrs.frozen
class Assignment:
    """The share that one member is given. Immutable."""

    partitions: tuple[TopicPartition, ...]
    user_data: bytes | None = None


class RebalanceProtocol(IntEnum):
    """The rules by which members of a classic group hand partitions over (KIP-429). Later ones are preferred."""

    EAGER = 0
    """A member gives up all its partitions before it joins, so an assignor may share them out anew."""
    COOPERATIVE = 1
    """A member joins with its partitions. An assignor must not give one away in the rebalance in which it is still
    owned: it leaves it out, the owner gives it up, and the next rebalance assigns it."""


class ConsumerPartitionAssignor(abc.ABC):
    """Divides the partitions of a group's topics among its members.

    An instance belongs to one consumer, and every method of it is called on that consumer's I/O thread, which must not
    wait. So it may keep state from one rebalance to the next, and needs no locks.
    """

    NAME: ClassVar[str]

    @property
    def name(self) -> str:
        """The name under which the members agree on it."""
        return self.NAME

    @property
    def version(self) -> int:
        """A number for whoever changes the form of the user data or the algorithm; no client reads it, as in Java.

        What members have to know of each other's they say in the user data.
        """
        return 0

    @property
    def supported_protocols(self) -> tuple[RebalanceProtocol, ...]:
        """The rules that its assignments keep to; a consumer follows the highest that all of its assignors support."""
        return (RebalanceProtocol.EAGER,)

    def subscription_user_data(self, topics: frozenset[str]) -> bytes | None:  # noqa: ARG002 - for others
        """Data of its own for the leader's `assign`, as `Subscription.user_data`; asked for whenever the member joins.

        `topics` are those that the consumer is subscribed to.
        """
        return None

    @abc.abstractmethod
    def assign(self, cluster: Cluster, subscriptions: Mapping[str, Subscription]) -> dict[str, Assignment]:
        """The assignment of each member id in `subscriptions`; every member gets one, though it may be empty.

        Called on the leader of the group alone. An error that it raises is raised by the leader's poll().
        """

    def on_assignment(  # noqa: B027 - most assignors have nothing to remember
        self, assignment: Assignment, metadata: ConsumerGroupMetadata
    ) -> None:
        """Take note of the member's own share in the generation of `metadata`; called whenever the leader sent one."""


@attrs.frozen
class MemberInfo:
    """A member as assignors order it: static members by instance id, before all dynamic ones by member id."""

    member_id: str
    group_instance_id: str | None
    rack_id: str | None = None

    @property
    def sort_key(self) -> tuple[bool, str]:
        """Sorts members the same way on every leader, so that a static member keeps its share (KIP-345)."""
        if self.group_instance_id is not None:
            return False, self.group_instance_id
        return True, self.member_id


def partitions_of(topic: str, count: int) -> list[TopicPartition]:
    """The `count` partitions of `topic`, in order."""
    return [TopicPartition(topic, partition) for partition in range(count)]


def members_by_topic(subscriptions: Mapping[str, Subscription]) -> dict[str, list[MemberInfo]]:
    """The members subscribed to each topic, in the order of `subscriptions`."""
    by_topic: dict[str, list[MemberInfo]] = {}
    for member_id, subscription in subscriptions.items():
        rack = subscription.rack_id or None
        member = MemberInfo(member_id, subscription.group_instance_id, rack)
        for topic in dict.fromkeys(subscription.topics):
            by_topic.setdefault(topic, []).append(member)
    return by_topic
