"""DeleteRecords (21), versions 0 to 2: let partitions begin later.

Behaviour: offset -1 means the high watermark. Topics that are only compacted are refused, as nothing may be
missing from them. Access: DELETE on the topics.
"""

from __future__ import annotations

from kclient.broker.apis.call import ApiCall, error_in
from kclient.broker.metadata.topic_names import INTERNAL_TOPICS
from kclient.common.acl import AclOperation, ResourceType
from kclient.common.topic_partition import TopicPartition
from kclient.errors import InvalidTopicError, PolicyViolationError, TopicAuthorizationError
from kclient.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)


def delete_records(call: ApiCall, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    """Delete from each partition."""
    deletable = call.authorized_names(
        AclOperation.DELETE, ResourceType.TOPIC, (topic.name for topic in request.topics)
    )
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    _delete(
                        call,
                        TopicPartition(topic.name, given.partition_index),
                        given.offset,
                        allowed=topic.name in deletable,
                    )
                    for given in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _delete(call: ApiCall, tp: TopicPartition, offset: int, *, allowed: bool) -> DeleteRecordsPartitionResult:
    result = DeleteRecordsPartitionResult(partition_index=tp.partition, low_watermark=-1)
    with error_in(result):
        if not allowed:
            raise TopicAuthorizationError
        if tp.topic in INTERNAL_TOPICS:
            raise InvalidTopicError(f"{tp.topic} holds the broker's own state")
        partition = call.broker.replicas.partition(tp)
        if not partition.log.config.delete:
            raise PolicyViolationError(f"{tp.topic} is compacted; records leave it by tombstones")
        result.low_watermark = call.broker.replicas.delete_records(tp, offset)
    return result
