"""OffsetForLeaderEpoch (23), versions 2 to 4: where an epoch ended, for consumers that check for truncation
(KIP-320).

Behaviour: answers for the largest epoch that is not above the one asked for; -1 for both if that is not
known. Access: CLUSTER_ACTION on the cluster, or
DESCRIBE on the topics.
"""

from __future__ import annotations

from collections.abc import Container

from kclient.broker.apis.access import EVERYTHING
from kclient.broker.apis.call import ApiCall, error_in
from kclient.common.acl import AclOperation, ResourceType
from kclient.common.topic_partition import TopicPartition
from kclient.errors import Errors
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
    visible: Container[str] = EVERYTHING
    # Followers ask with the rights of brokers, consumers with their own.
    if not call.authorized(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, log_denied=False):
        visible = call.authorized_names(
            AclOperation.DESCRIBE, ResourceType.TOPIC, (topic.topic for topic in request.topics)
        )
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    _look_up(call, topic.topic, wanted)
                    if topic.topic in visible
                    else EpochEndOffset(
                        partition=wanted.partition, error_code=int(Errors.TOPIC_AUTHORIZATION_FAILED)
                    )
                    for wanted in topic.partitions
                ],
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
