"""OffsetDelete (47), version 0: forget offsets of a group.

Behaviour: a topic that members read fails by itself; groups of other kinds must be empty. Access: DELETE on
the group, READ on the topics.
"""

from __future__ import annotations

from kclient.broker.apis.call import ApiCall
from kclient.broker.apis.resources import coded
from kclient.common.acl import AclOperation, ResourceType
from kclient.common.topic_partition import TopicPartition
from kclient.errors import Errors, KafkaError
from kclient.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def offset_delete(call: ApiCall, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    """Delete what can be deleted."""
    if not call.authorized(AclOperation.DELETE, ResourceType.GROUP, request.group_id):
        return OffsetDeleteResponse(error_code=int(Errors.GROUP_AUTHORIZATION_FAILED))
    readable = call.authorized_names(
        AclOperation.READ, ResourceType.TOPIC, (topic.name for topic in request.topics)
    )
    cache = call.broker.controller.cache
    codes: dict[TopicPartition, int] = {}
    tps = []
    for topic in request.topics:
        for given in topic.partitions:
            tp = TopicPartition(topic.name, given.partition_index)
            if topic.name not in readable:
                codes[tp] = int(Errors.TOPIC_AUTHORIZATION_FAILED)
            elif cache.contains(tp):
                tps.append(tp)
            else:
                codes[tp] = int(Errors.UNKNOWN_TOPIC_OR_PARTITION)
    try:
        codes.update(call.broker.groups.offsets.delete(request.group_id, tps))
    except KafkaError as error:
        return OffsetDeleteResponse(error_code=Errors.code_for(error))
    topics = coded(request.topics, codes, OffsetDeleteResponseTopic, OffsetDeleteResponsePartition)
    return OffsetDeleteResponse(topics=topics)
