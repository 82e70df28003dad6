"""DeleteRecords (21), versions 0 to 2: let partitions begin later.

Behaviour: offset -1 means the high watermark. Topics that are only compacted are refused, as nothing may be
missing from them. Access: DELETE on the topics.
"""

from __future__ import annotations

from kclient.broker.apis.call import ApiCall
from kclient.broker.apis.registry import handles
from kclient.broker.metadata.cache import INTERNAL_TOPICS
from kclient.common.topic_partition import TopicPartition
from kclient.errors import Errors, InvalidTopicError, KafkaError, PolicyViolationError
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)


@handles(ApiKeys.DELETE_RECORDS, 0, 2)
def delete_records(call: ApiCall, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    """Delete from each partition."""
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    _delete(call, TopicPartition(topic.name, given.partition_index), given.offset)
                    for given in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _delete(call: ApiCall, tp: TopicPartition, offset: int) -> DeleteRecordsPartitionResult:
    try:
        if tp.topic in INTERNAL_TOPICS:
            raise InvalidTopicError(f"{tp.topic} holds the broker's own state")
        partition = call.broker.replicas.partition(tp)
        if not partition.log.config.delete:
            raise PolicyViolationError(f"{tp.topic} is compacted; records leave it by tombstones")
        low_watermark = call.broker.replicas.delete_records(tp, offset)
    except KafkaError as error:
        return DeleteRecordsPartitionResult(
            partition_index=tp.partition, low_watermark=-1, error_code=Errors.code_for(error)
        )
    return DeleteRecordsPartitionResult(partition_index=tp.partition, low_watermark=low_watermark)
