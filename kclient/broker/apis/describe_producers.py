"""DescribeProducers (61), version 0: who has lately written to partitions (KIP-664). Access: READ on the topics."""

from __future__ import annotations

from kclient.broker.apis.call import ApiCall, error_in
from kclient.common.acl import AclOperation, ResourceType
from kclient.common.topic_partition import TopicPartition
from kclient.errors import TopicAuthorizationError
from kclient.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)


def describe_producers(call: ApiCall, request: DescribeProducersRequest) -> DescribeProducersResponse:
    """Describe each partition."""
    readable = call.authorized_names(
        AclOperation.READ, ResourceType.TOPIC, (topic.name for topic in request.topics)
    )
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[
                    _describe(call, TopicPartition(topic.name, number), allowed=topic.name in readable)
                    for number in topic.partition_indexes
                ],
            )
            for topic in request.topics
        ]
    )


def _describe(call: ApiCall, tp: TopicPartition, *, allowed: bool) -> PartitionResponse:
    result = PartitionResponse(partition_index=tp.partition)
    with error_in(result):
        if not allowed:
            raise TopicAuthorizationError
        result.active_producers = [
            ProducerState(
                producer_id=state.producer_id,
                producer_epoch=state.producer_epoch,
                last_sequence=state.last_sequence,
                last_timestamp=state.last_timestamp_ms,
                coordinator_epoch=state.coordinator_epoch,
                current_txn_start_offset=-1
                if state.current_txn_first_offset is None
                else state.current_txn_first_offset,
            )
            for state in call.broker.replicas.partition(tp).log.producer_states()
        ]
    return result
