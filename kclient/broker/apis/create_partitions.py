"""CreatePartitions (37), versions 0 to 3: give topics more partitions.

Behaviour: each topic succeeds or fails by itself. Access: ALTER on the topics.
"""

from __future__ import annotations

from kclient.broker.apis.call import ApiCall, error_in
from kclient.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


def create_partitions(call: ApiCall, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    """Grow each topic."""
    return CreatePartitionsResponse(
        results=[_grow(call, topic, request.validate_only) for topic in request.topics]
    )


def _grow(call: ApiCall, topic: CreatePartitionsTopic, validate_only: bool) -> CreatePartitionsTopicResult:
    assignments = (
        None if topic.assignments is None else [assigned.broker_ids for assigned in topic.assignments]
    )
    result = CreatePartitionsTopicResult(name=topic.name)
    with error_in(result):
        call.broker.controller.create_partitions(
            topic.name, topic.count, assignments, validate_only=validate_only
        )
    return result
