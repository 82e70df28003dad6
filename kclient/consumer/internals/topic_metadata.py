"""Partitions of any topic on request, subscribed to or not."""

from __future__ import annotations

from typing import Any

import attrs

from kclient.client.metadata_response import EpochMemory, read_response
from kclient.client.metadata_snapshot import MetadataSnapshot
from kclient.client.request_sender import NEVER, Reply, RequestSender
from kclient.common.topic_partition import PartitionInfo
from kclient.consumer.internals.requests import PendingRequest, Request
from kclient.errors import (
    Errors,
    InvalidTopicError,
    KafkaError,
    TopicAuthorizationError,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kclient.utils.backoff import ExponentialBackoff


@attrs.define(eq=False)
class _Waiting(PendingRequest[dict[str, list[PartitionInfo]]]):
    topics: tuple[str, ...] | None
    in_flight: bool = False


@attrs.define(eq=False, repr=False)
class TopicMetadataManager:
    """Asks any broker about topics, without touching what the consumer knows of its own. For the I/O thread."""

    _sender: RequestSender
    _backoff: ExponentialBackoff
    _allow_auto_topic_creation: bool
    _waiting: list[_Waiting] = attrs.field(factory=list, init=False)

    def fetch(self, topics: tuple[str, ...] | None, request: Request[dict[str, list[PartitionInfo]]]) -> None:
        """Look up the partitions of those of `topics` that exist, or of all topics for None."""
        self._waiting.append(_Waiting(request, topics))

    def poll(self, now_ms: int) -> int:
        """Send what is due."""
        wait_ms = NEVER
        if not self._waiting:
            return wait_ms
        self._waiting = [each for each in self._waiting if not each.request.done()]
        for waiting in self._waiting:
            if now_ms >= waiting.request.deadline_ms:
                waiting.expire(
                    "No broker answered for topic metadata in time", self._sender.client.connection_failure()
                )
                continue
            if not waiting.in_flight and now_ms >= waiting.retry_ms:
                self._send(waiting, now_ms)
            next_ms = waiting.request.deadline_ms
            if not waiting.in_flight:
                next_ms = min(next_ms, waiting.retry_ms)
            wait_ms = min(wait_ms, next_ms - now_ms)
        return wait_ms

    def _send(self, waiting: _Waiting, now_ms: int) -> None:
        waiting.in_flight = True
        topics = waiting.topics

        def build(version: int) -> MetadataRequest:
            if topics is None:
                # Version 0 says "all" by an empty list. Asking for all topics never creates one.
                listed: list[Any] | None = [] if version == 0 else None
                return MetadataRequest(topics=listed, allow_auto_topic_creation=True)
            return MetadataRequest(
                topics=[MetadataRequestTopic(name=topic) for topic in topics],
                allow_auto_topic_creation=self._allow_auto_topic_creation if version >= 4 else True,
            )

        self._sender.send(None, ApiKeys.METADATA, build, lambda reply: self._on_reply(waiting, reply), now_ms)

    def _on_reply(self, waiting: _Waiting, reply: Reply) -> None:
        waiting.in_flight = False
        error = reply.error or _error(reply.message)
        if error is None:
            waiting.request.complete(_partitions(reply.message))
        elif error.retriable:
            waiting.last_error = error
            waiting.back_off(self._backoff, reply.now_ms)
        else:
            waiting.request.fail(error)


def _error(response: MetadataResponse) -> KafkaError | None:
    for topic in response.topics:
        code = topic.error_code
        if code in (Errors.NONE, Errors.UNKNOWN_TOPIC_OR_PARTITION):
            continue  # a topic that does not exist is simply not in the answer
        if code == Errors.TOPIC_AUTHORIZATION_FAILED:
            return TopicAuthorizationError(f"Not authorized to describe topic {topic.name!r}")
        if code == Errors.INVALID_TOPIC_EXCEPTION:
            return InvalidTopicError(f"The brokers refuse the topic name {topic.name!r}")
        return Errors.for_code(code, f"Topic {topic.name!r}: {Errors.name_of(code)}")
    return None


def _partitions(response: MetadataResponse) -> dict[str, list[PartitionInfo]]:
    picture = read_response(response, MetadataSnapshot.bootstrap(()), EpochMemory())
    cluster = picture.snapshot.cluster
    return {topic: list(cluster.partitions_for_topic(topic)) for topic in sorted(cluster.topics)}
