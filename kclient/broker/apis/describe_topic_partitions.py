"""DescribeTopicPartitions (75), version 0: partitions of topics, page by page (KIP-966).

Behaviour: topics in order of their names, from the cursor on; a page ends after so many partitions as the client or
max.request.partition.size.limit allows, in the middle of a topic if need be. Nothing is created. Access: DESCRIBE on
the topics; of those that may not be described only those are told that were asked for by name.
"""

from __future__ import annotations

from collections.abc import Sequence

from kclient.broker.apis.call import ApiCall
from kclient.broker.apis.metadata import tell_leader
from kclient.broker.metadata.image.topics import TopicImage
from kclient.broker.metadata.topic_names import INTERNAL_TOPICS, validate_topic_name
from kclient.common.acl import AclOperation, ResourceType
from kclient.common.topic_partition import TopicPartition
from kclient.errors import Errors, InvalidRequestError, KafkaError
from kclient.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseCursor,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)


def describe_topic_partitions(
    call: ApiCall, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    """Describe a page of partitions."""
    try:
        names, first = _page(call, request)
    except InvalidRequestError as error:
        code = Errors.code_for(error)
        return DescribeTopicPartitionsResponse(
            topics=[
                DescribeTopicPartitionsResponseTopic(name=topic.name, error_code=code)
                for topic in request.topics
            ]
        )
    every = not request.topics
    visible = call.authorized_names(AclOperation.DESCRIBE, ResourceType.TOPIC, names, log_denied=not every)
    if names[:1] and names[0] not in visible:
        first = 0
    limit = min(request.response_partition_limit, call.broker.config.max_request_partition_size_limit)
    response = _describe(call, [name for name in names if name in visible], first, limit)
    if not every:
        response.topics += [
            DescribeTopicPartitionsResponseTopic(name=name, error_code=int(Errors.TOPIC_AUTHORIZATION_FAILED))
            for name in names
            if name not in visible
        ]
    return response


def _page(call: ApiCall, request: DescribeTopicPartitionsRequest) -> tuple[list[str], int]:
    """Return the topics from the cursor on, and the first partition of the first of them."""
    cursor = request.cursor
    if request.response_partition_limit < 1:
        raise InvalidRequestError("The limit of partitions must be 1 or more")
    if cursor is not None and cursor.partition_index < 0:
        raise InvalidRequestError("The cursor's partition must be 0 or more")
    cache = call.broker.controller.cache
    asked = [topic.name for topic in request.topics] or [topic.name for topic in cache.topics()]
    names = sorted({name for name in asked if cursor is None or name >= cursor.topic_name})
    if cursor is None:
        return names, 0
    if request.topics and cursor.topic_name not in names:
        raise InvalidRequestError(
            f"The cursor's topic {cursor.topic_name} is not among those that are asked for"
        )
    # A topic that was deleted between two pages: the next one begins at its beginning.
    return names, cursor.partition_index if names[:1] == [cursor.topic_name] else 0


def _describe(call: ApiCall, names: Sequence[str], first: int, limit: int) -> DescribeTopicPartitionsResponse:
    response = DescribeTopicPartitionsResponse()
    cache = call.broker.controller.cache
    for name in names:
        if not limit:
            response.next_cursor = DescribeTopicPartitionsResponseCursor(
                topic_name=name, partition_index=first
            )
            break
        topic = cache.topic(name)
        if topic is None:
            response.topics.append(_missing(call, name))
            continue
        end = min(first + limit, topic.partition_count)
        response.topics.append(_topic(call, topic, first, end))
        if end < topic.partition_count:
            response.next_cursor = DescribeTopicPartitionsResponseCursor(topic_name=name, partition_index=end)
            break
        limit -= max(end - first, 0)
        first = 0
    return response


def _topic(call: ApiCall, topic: TopicImage, first: int, end: int) -> DescribeTopicPartitionsResponseTopic:
    partitions = []
    for number in range(first, end):
        described = DescribeTopicPartitionsResponsePartition(
            partition_index=number, eligible_leader_replicas=[], last_known_elr=[]
        )
        tell_leader(call.broker, TopicPartition(topic.name, number), described)
        partitions.append(described)
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.is_internal,
        partitions=partitions,
        topic_authorized_operations=call.authorized_operations(ResourceType.TOPIC, topic.name),
    )


def _missing(call: ApiCall, name: str) -> DescribeTopicPartitionsResponseTopic:
    described = DescribeTopicPartitionsResponseTopic(
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=call.authorized_operations(ResourceType.TOPIC, name),
    )
    try:
        validate_topic_name(name)
        described.error_code = int(Errors.UNKNOWN_TOPIC_OR_PARTITION)
    except KafkaError as error:
        described.error_code = Errors.code_for(error)
    return described
