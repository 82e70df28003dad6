"""DeleteTopics: delete topics with all records."""

from __future__ import annotations

from kclient.common.uuid import Uuid
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import UUID, Array, Int16, Int32, String


@structure
class DeleteTopicState(Structure):
    name: str | None = wire(String, "6+", nullable="6+", default=None)
    topic_id: Uuid = wire(UUID, "6+")


@message(api_key=ApiKeys.DELETE_TOPICS, kind="request", versions="1-6", flexible="4+")
class DeleteTopicsRequest(Message):
    """Up to version 5 by name, from 6 on by name or id."""

    topics: list[DeleteTopicState] = wire(Array(DeleteTopicState), "6+")
    topic_names: list[str] = wire(Array(String), "0-5", ignorable=True)
    timeout_ms: int = wire(Int32, "0+")


@structure
class DeletableTopicResult(Structure):
    name: str | None = wire(String, "0+", nullable="6+")
    topic_id: Uuid = wire(UUID, "6+", ignorable=True)
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "5+", nullable="5+", default=None, ignorable=True)


@message(api_key=ApiKeys.DELETE_TOPICS, kind="response", versions="1-6", flexible="4+")
class DeleteTopicsResponse(Message):
    """An error code for each topic."""

    throttle_time_ms: int = wire(Int32, "1+", ignorable=True)
    responses: list[DeletableTopicResult] = wire(Array(DeletableTopicResult), "0+")
