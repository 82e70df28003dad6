"""CreateTopics (19), versions 2 to 7: create topics.

Versions: 4 takes -1 for the broker's defaults (as older ones do here), 5 tells the settings, 6 fails where a quota of
mutations is exceeded (KIP-599; before it the client is only held back), 7 tells the topic's id. Behaviour: each topic
succeeds or fails by itself; a topic named twice fails. Access: CREATE on the cluster or the topics; DESCRIBE_CONFIGS
for being told of the settings.
"""

from __future__ import annotations

from collections import Counter

from kclient.broker.apis.call import ApiCall
from kclient.broker.metadata.controller import NewTopic, check_partition_limit
from kclient.broker.metadata.topic_settings import described_settings
from kclient.broker.quota.mutation_quota_manager import MutationQuota
from kclient.common.acl import AclOperation, ResourceType
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
    wanted = sum(_partition_count(call, topic) for topic in request.topics)
    results: dict[str, CreatableTopicResult] = {}
    every = call.authorized(AclOperation.CREATE, ResourceType.CLUSTER, log_denied=False)
    quota = call.mutation_quota(strict_since=6)
    for topic in request.topics:
        try:
            if counts[topic.name] > 1:
                raise InvalidRequestError(f"Topic {topic.name} is in the request more than once")
            if not every:
                call.require(AclOperation.CREATE, ResourceType.TOPIC, topic.name)
            check_partition_limit(wanted)
            results[topic.name] = _create(call, topic, quota, request.validate_only)
        except KafkaError as error:
            results[topic.name] = CreatableTopicResult(
                name=topic.name, error_code=Errors.code_for(error), error_message=str(error)
            )
    call.hold_back(quota.throttle_ms)
    return CreateTopicsResponse(topics=list(results.values()))


def _partition_count(call: ApiCall, topic: CreatableTopic) -> int:
    if topic.assignments:
        return len(topic.assignments)
    return call.broker.config.num_partitions if topic.num_partitions == -1 else max(topic.num_partitions, 0)


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
    result = CreatableTopicResult(name=created.name, topic_id=created.id, error_message=None)
    if not call.authorized(AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, created.name, log_denied=False):
        result.topic_config_error_code = int(Errors.TOPIC_AUTHORIZATION_FAILED)
        return result
    result.num_partitions, result.replication_factor = created.partition_count, 1
    result.configs = [
        CreatableTopicConfigs(name=setting.name, value=setting.value, config_source=setting.config_source)
        for setting in described_settings(
            controller.settings, controller.log_config(created.configs), created.configs
        )
    ]
    return result
