"""CreateTopics (19), versions 2 to 7: create topics.

Versions: 4 takes -1 for the broker's defaults (as older ones do here), 5 tells the settings, 6 fails where
a quota of mutations is exceeded (KIP-599; before it the client is only held back), 7 tells the topic's id. Behaviour:
each topic succeeds or fails by itself; a topic named twice fails. Access: CREATE on the
cluster or the topics.
"""

from __future__ import annotations

from collections import Counter

from kclient.broker.apis.call import ApiCall
from kclient.broker.metadata.controller import NewTopic
from kclient.broker.metadata.topic_settings import described_settings
from kclient.broker.quota.mutation_quota_manager import MutationQuota
from kclient.errors import (
    Errors,
    InvalidReplicaAssignmentError,
    InvalidRequestError,
    KafkaError,
)
from kclient.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)


def create_topics(call: ApiCall, request: CreateTopicsRequest) -> CreateTopicsResponse:
    """Create each topic."""
    counts = Counter(topic.name for topic in request.topics)
    results: dict[str, CreatableTopicResult] = {}
    quota = call.mutation_quota(strict_since=6)
    for topic in request.topics:
        try:
            if counts[topic.name] > 1:
                raise InvalidRequestError(f"Topic {topic.name} is in the request more than once")
            results[topic.name] = _create(call, topic, quota, request.validate_only)
        except KafkaError as error:
            results[topic.name] = CreatableTopicResult(
                name=topic.name, error_code=Errors.code_for(error), error_message=str(error)
            )
    call.hold_back(quota.throttle_ms)
    return CreateTopicsResponse(topics=list(results.values()))


def _create(
    call: ApiCall, topic: CreatableTopic, quota: MutationQuota, validate_only: bool
) -> CreatableTopicResult:
    assignments = {assignment.partition_index: assignment.broker_ids for assignment in topic.assignments}
    if len(assignments) != len(topic.assignments):
        raise InvalidReplicaAssignmentError("A partition is assigned more than once")
    controller = call.broker.controller
    created = controller.create_topic(
        NewTopic(
            topic.name,
            topic.num_partitions,
            topic.replication_factor,
            assignments,
            {config.name: config.value for config in topic.configs},
        ),
        validate_only=validate_only,
        charge=quota.charge,
    )
    return CreatableTopicResult(
        name=created.name,
        topic_id=created.id,
        error_message=None,
        num_partitions=created.partition_count,
        replication_factor=1,
        configs=[
            CreatableTopicConfigs(name=setting.name, value=setting.value, config_source=setting.config_source)
            for setting in described_settings(
                controller.settings, controller.log_config(created.configs), created.configs
            )
        ],
    )
