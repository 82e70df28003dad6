"""DeleteTopics (20), versions 1 to 6: delete topics.

Versions: 4 is flexible, 5 brought error messages, 6 takes topic ids. Behaviour: each topic succeeds or fails
by itself. Access: DELETE on the topics.
"""

from __future__ import annotations

from kclient.broker.apis.call import ApiCall
from kclient.broker.apis.registry import handles
from kclient.broker.metadata.cache import TopicImage
from kclient.common.uuid import Uuid
from kclient.errors import (
    Errors,
    InvalidRequestError,
    KafkaError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)


@handles(ApiKeys.DELETE_TOPICS, 1, 6)
def delete_topics(call: ApiCall, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    """Delete each topic."""
    wanted = request.topics
    if call.version < 6:
        wanted = [DeleteTopicState(name=name) for name in request.topic_names]
    return DeleteTopicsResponse(responses=[_delete(call, topic) for topic in wanted])


def _delete(call: ApiCall, wanted: DeleteTopicState) -> DeletableTopicResult:
    result = DeletableTopicResult(name=wanted.name, topic_id=wanted.topic_id)
    try:
        topic = _find(call, wanted)
        result.name, result.topic_id = topic.name, topic.id
        call.broker.controller.delete_topic(topic)
    except KafkaError as error:
        result.error_code = Errors.code_for(error)
        result.error_message = str(error)
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
    topic = cache.topic(wanted.name)
    if topic is None:
        raise UnknownTopicOrPartitionError(f"There is no topic {wanted.name}")
    return topic
