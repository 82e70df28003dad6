"""Parts that several handlers share: kinds of resources, permitted operations, codes by partition."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import Any

from kclient.broker.apis.call import ApiCall
from kclient.common.topic_partition import TopicPartition
from kclient.errors import InvalidRequestError

# What may be done to a cluster, a topic and a group, as bits by the numbers of Kafka's AclOperation. Without
# an authorizer it is everything that makes sense for them.
CLUSTER_OPERATIONS = sum(1 << bit for bit in (5, 7, 8, 9, 10, 11, 12))
TOPIC_OPERATIONS = sum(1 << bit for bit in (3, 4, 5, 6, 7, 8, 10, 11))
GROUP_OPERATIONS = sum(1 << bit for bit in (3, 6, 8))


class ResourceType(enum.IntEnum):
    """The kind of resource that is configured, by its number in the protocol."""

    TOPIC = 2
    BROKER = 4


def topic_overrides(call: ApiCall, resource_type: int, name: str) -> Mapping[str, str]:
    """The settings of a topic that is to be changed. Raises UnknownTopicOrPartitionError, and
    InvalidRequestError for anything that is no topic.
    """
    if resource_type == ResourceType.BROKER:
        raise InvalidRequestError("The settings of this broker can only be changed by a restart")
    if resource_type != ResourceType.TOPIC:
        raise InvalidRequestError(f"Resources of type {resource_type} have no settings here")
    return call.broker.controller.cache.existing_topic(name).configs


def coded(
    topics: Iterable[Any], codes: Mapping[TopicPartition, int], topic_class: type[Any], part_class: type[Any]
) -> list[Any]:
    """The topics of a request again, as the response has them: each partition with its error code."""
    return [
        topic_class(
            name=topic.name,
            partitions=[
                part_class(
                    partition_index=given.partition_index,
                    error_code=codes[TopicPartition(topic.name, given.partition_index)],
                )
                for given in topic.partitions
            ],
        )
        for topic in topics
    ]
