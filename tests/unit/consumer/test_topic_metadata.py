"""Questions about topics, subscribed to or not: answers, errors, and what is asked again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kclient.errors import Errors, InvalidTopicError, KafkaError, KafkaTimeoutError, TopicAuthorizationError
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages import metadata


def refuse(code: int) -> Callable[[Any, int], Any]:
    def handler(request: Any, version: int) -> Any:
        topics = [
            metadata.MetadataResponseTopic(name=topic.name, error_code=code) for topic in request.topics
        ]
        return metadata.MetadataResponse(topics=topics)

    return handler


def asked(rig: Any) -> list[Any]:
    """The names of each request; None for all topics."""
    return [
        None if request.topics is None else [topic.name for topic in request.topics]
        for request in rig.sent(ApiKeys.METADATA)
    ]


def test_one_topic_is_asked_for_by_name_and_all_without_one(rig: Any) -> None:
    assert [info.partition for info in rig.consumer.partitions_for("t")] == [0, 1]
    assert {topic: len(infos) for topic, infos in rig.consumer.list_topics().items()} == {"t": 2, "u": 2}
    assert asked(rig) == [["t"], None]


@pytest.mark.parametrize("allowed", [True, False])
def test_brokers_may_make_a_topic_that_is_asked_for_only_if_that_is_allowed(
    make_rig: Callable[..., Any], allowed: bool
) -> None:
    rig = make_rig(allow_auto_create_topics=allowed)
    rig.consumer.partitions_for("t")
    (request,) = rig.sent(ApiKeys.METADATA)
    assert request.allow_auto_topic_creation is allowed


def test_a_topic_that_does_not_exist_has_no_partitions(rig: Any) -> None:
    assert rig.consumer.partitions_for("missing") == []


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (Errors.TOPIC_AUTHORIZATION_FAILED, TopicAuthorizationError),
        (Errors.INVALID_TOPIC_EXCEPTION, InvalidTopicError),
        (Errors.UNKNOWN_SERVER_ERROR, KafkaError),
    ],
)
def test_an_error_that_stays_is_raised_and_not_asked_for_again(
    rig: Any, code: int, error: type[KafkaError]
) -> None:
    rig.on(ApiKeys.METADATA, refuse(code))
    with pytest.raises(error):
        rig.consumer.partitions_for("t")
    assert len(asked(rig)) == 1


@pytest.mark.parametrize("reply", [refuse(Errors.LEADER_NOT_AVAILABLE), ConnectionError()])
def test_a_passing_error_is_asked_for_again_after_a_pause(rig: Any, reply: Any) -> None:
    rig.on(ApiKeys.METADATA, reply, reply)
    started_ms = rig.time.monotonic_ms()
    assert len(rig.consumer.partitions_for("t")) == 2
    assert len(asked(rig)) == 3
    assert rig.time.monotonic_ms() - started_ms >= 100


def test_when_the_time_is_over_the_last_error_says_why(rig: Any) -> None:
    rig.on(ApiKeys.METADATA, *[refuse(Errors.LEADER_NOT_AVAILABLE)] * 1000)
    with pytest.raises(KafkaTimeoutError, match="No broker answered for topic metadata in time: "):
        rig.consumer.partitions_for("t", timeout_ms=1000)
    assert 2 < len(asked(rig)) < 20
