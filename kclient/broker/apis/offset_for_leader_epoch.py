"""OffsetForLeaderEpoch (23), versions 2 to 4: where an epoch ended, for consumers that check for truncation
(KIP-320).

Behaviour: answers for the largest epoch that is not above the one asked for; -1 for both if that is not
known. Access: DESCRIBE on the topics.
"""

from __future__ import annotations

from kclient.broker.apis.call import ApiCall, error_in
from kclient.common.topic_partition import TopicPartition
from kclient.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


def offset_for_leader_epoch(
    call: ApiCall, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    """Look up each partition."""
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_look_up(call, topic.topic, wanted) for wanted in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _look_up(call: ApiCall, topic: str, wanted: OffsetForLeaderPartition) -> EpochEndOffset:
    result = EpochEndOffset(partition=wanted.partition)
    with error_in(result):
        partition = call.broker.replicas.partition(TopicPartition(topic, wanted.partition))
        partition.check_leader_epoch(wanted.current_leader_epoch)
        result.leader_epoch, result.end_offset = partition.end_offset_for_epoch(wanted.leader_epoch)
    return result
