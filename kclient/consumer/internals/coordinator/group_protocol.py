"""The messages that the members of a classic consumer group send each other through the coordinator."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

import attrs

from kclient.common.cluster import Cluster
from kclient.common.topic_partition import TopicPartition
from kclient.consumer.assignor.base import Assignment, ConsumerPartitionAssignor, Subscription
from kclient.errors import KafkaError, SchemaError
from kclient.protocol.codec import decode_prefix, encode_versioned
from kclient.protocol.messages import consumer_protocol
from kclient.protocol.messages.join_group import JoinGroupResponseMember
from kclient.utils.log_context import Logger

PROTOCOL_TYPE = "consumer"


def encode_subscription(subscription: Subscription) -> bytes:
    """A member's metadata in JoinGroup."""
    return bytes(
        encode_versioned(
            consumer_protocol.ConsumerProtocolSubscription(
                topics=sorted(subscription.topics),
                user_data=subscription.user_data,
                owned_partitions=_group_by_topic(
                    sorted(subscription.owned_partitions),
                    consumer_protocol.ConsumerProtocolSubscriptionTopicPartition,
                ),
                generation_id=subscription.generation_id,
                rack_id=subscription.rack_id,
            ),
            consumer_protocol.ConsumerProtocolSubscription.MAX_VERSION,
        )
    )


def encode_subscription_for(assignor: ConsumerPartitionAssignor, subscription: Subscription) -> bytes:
    """The same with what `assignor` has to say to the leader's. Raises KafkaError if the assignor fails."""
    try:
        user_data = assignor.subscription_user_data(frozenset(subscription.topics))
    except Exception as error:
        raise KafkaError(f"The assignor {assignor.name!r} has no user data: {error!r}") from error
    return encode_subscription(attrs.evolve(subscription, user_data=user_data))


def decode_subscription(data: bytes | memoryview, group_instance_id: str | None = None) -> Subscription:
    """The other direction; raises SchemaError for anything malformed."""
    message = _decode(consumer_protocol.ConsumerProtocolSubscription, data)
    return Subscription(
        topics=tuple(message.topics),
        user_data=None if message.user_data is None else bytes(message.user_data),
        owned_partitions=_ungroup(message.owned_partitions),
        group_instance_id=group_instance_id,
        generation_id=message.generation_id,
        rack_id=message.rack_id,
    )


def encode_assignment(assignment: Assignment) -> bytes:
    """A member's share in SyncGroup."""
    return bytes(
        encode_versioned(
            consumer_protocol.ConsumerProtocolAssignment(
                assigned_partitions=_group_by_topic(
                    assignment.partitions, consumer_protocol.ConsumerProtocolAssignmentTopicPartition
                ),
                user_data=assignment.user_data,
            ),
            consumer_protocol.ConsumerProtocolAssignment.MAX_VERSION,
        )
    )


def decode_assignment(data: bytes | memoryview) -> Assignment:
    """The other direction; raises SchemaError for anything malformed. No bytes at all are an empty share."""
    if not len(data):
        return Assignment(())
    message = _decode(consumer_protocol.ConsumerProtocolAssignment, data)
    return Assignment(_ungroup(message.assigned_partitions), message.user_data)


def decode_members(members: Iterable[JoinGroupResponseMember], log: Logger) -> dict[str, Subscription]:
    """The subscriptions of all members.

    One that cannot be read counts as a subscription to nothing: a single broken member must not keep the whole
    group from getting its partitions, rebalance after rebalance.
    """
    subscriptions = {}
    for member in members:
        try:
            subscriptions[member.member_id] = decode_subscription(member.metadata, member.group_instance_id)
        except SchemaError as error:
            log.warning(
                "Group member %s gets no partitions, because its subscription is malformed: %s",
                member.member_id,
                error,
            )
            subscriptions[member.member_id] = Subscription((), None, (), member.group_instance_id)
    return subscriptions


def partition_counts(cluster: Cluster, topics: Iterable[str]) -> dict[str, object]:
    """The facts that an assignment of `topics` depends on: the partitions, and in which racks each has replicas."""
    return {
        topic: tuple(
            frozenset(node.rack for node in info.replicas if node.rack)
            for info in cluster.partitions_for_topic(topic)
        )
        for topic in topics
    }


def _decode(cls: Any, data: bytes | memoryview) -> Any:
    if len(data) < 2:
        raise SchemaError(f"{cls.__name__}: {len(data)} bytes cannot hold a version")
    (version,) = struct.unpack_from(">h", data)
    if version < cls.MIN_VERSION:
        raise SchemaError(f"{cls.__name__} has no version {version}")
    # Newer versions only append fields; what follows the ones known here is left unread.
    message, _ = decode_prefix(cls, min(version, cls.MAX_VERSION), data, 2)
    return message


def _group_by_topic(partitions: Iterable[TopicPartition], cls: Any) -> list[Any]:
    by_topic: dict[str, list[int]] = {}
    for tp in partitions:
        by_topic.setdefault(tp.topic, []).append(tp.partition)
    return [cls(topic=topic, partitions=numbers) for topic, numbers in by_topic.items()]


def _ungroup(topics: Iterable[Any]) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(each.topic, partition) for each in topics for partition in each.partitions)
