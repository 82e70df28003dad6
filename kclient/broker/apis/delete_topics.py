"""DeleteTopics (20), versions 1 to 6: delete topics.

Versions: 4 is flexible, 5 brought error messages, and fails where a quota of mutations is exceeded (KIP-599; before it
the client is only held back), 6 takes topic ids. Behaviour: each topic succeeds or fails by itself. Access: DELETE on
the cluster or the topics. Those who may not see a topic learn neither its name nor that there is none.
"""

from __future__ import annotations

from kclient.broker.apis.call import ApiCall, error_in
from kclient.broker.metadata.image.topics import TopicImage
from kclient.broker.quota.mutation_quota_manager import MutationQuota
from kclient.common.acl import AclOperation, ResourceType
from kclient.common.uuid import Uuid
from kclient.errors import InvalidRequestError, TopicAuthorizationError, UnknownTopicIdError
from kclient.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)


def delete_topics(call: ApiCall, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    """Delete each topic."""
    wanted = request.topics
    if call.version < 6:
        wanted = [DeleteTopicState(name=name) for name in request.topic_names]
    every = call.authorized(AclOperation.DELETE, ResourceType.CLUSTER, log_denied=False)
    quota = call.mutation_quota(strict_since=5)
    responses = [_delete(call, topic, quota, every) for topic in wanted]
    call.hold_back(quota.throttle_ms)
    return DeleteTopicsResponse(responses=responses)


def _delete(
    call: ApiCall, wanted: DeleteTopicState, quota: MutationQuota, every: bool
) -> DeletableTopicResult:
    result = DeletableTopicResult(name=wanted.name, topic_id=wanted.topic_id)
    with error_in(result):
        if not every and wanted.name is not None and wanted.topic_id == Uuid.ZERO:
            # Before it is looked for: those who may not see it are not told that there is none.
            call.require(AclOperation.DESCRIBE, ResourceType.TOPIC, wanted.name)
        topic = _find(call, wanted)
        if not every and not call.authorized(AclOperation.DELETE, ResourceType.TOPIC, topic.name):
            if wanted.name is None and call.authorized(AclOperation.DESCRIBE, ResourceType.TOPIC, topic.name):
                result.name = topic.name
            raise TopicAuthorizationError
        result.name, result.topic_id = topic.name, topic.id
        call.broker.controller.delete_topic(topic, charge=quota.charge)
    return result


def _find(call: ApiCall, wanted: DeleteTopicState) -> TopicImage:
    cache = call.broker.controller.cache
    if wanted.name is None:
        topic = cache.topic_by_id(wanted.topic_id)
        if topic is None:
            raise UnknownTopicIdError(f"There is no topic with id {wanted.topic_id}")
        return topic
    if wanted.topic_id != Uuid.ZERO:
        raise InvalidRequestError("A topic is named by its name or by its id, not by both")
    return cache.existing_topic(wanted.name)
