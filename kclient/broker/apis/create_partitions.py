"""CreatePartitions (37), versions 0 to 3: give topics more partitions.

Behaviour: each topic succeeds or fails by itself. Access: ALTER on the topics.
"""

from __future__ import annotations

from kclient.broker.apis.call import ApiCall
from kclient.broker.apis.registry import handles
from kclient.errors import Errors, KafkaError
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


@handles(ApiKeys.CREATE_PARTITIONS, 0, 3)
def create_partitions(call: ApiCall, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    """Grow each topic."""
    return CreatePartitionsResponse(
        results=[_grow(call, topic, request.validate_only) for topic in request.topics]
    )


def _grow(call: ApiCall, topic: CreatePartitionsTopic, validate_only: bool) -> CreatePartitionsTopicResult:
    assignments = (
        None if topic.assignments is None else [assigned.broker_ids for assigned in topic.assignments]
    )
    try:
        call.broker.controller.create_partitions(
            topic.name, topic.count, assignments, validate_only=validate_only
        )
    except KafkaError as error:
        return CreatePartitionsTopicResult(
            name=topic.name, error_code=Errors.code_for(error), error_message=str(error)
        )
    return CreatePartitionsTopicResult(name=topic.name)
