"""DeleteTopics: by name and by id, each topic by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness.broker.handlers import Handlers
from kclient.broker.apis.delete_topics import delete_topics
from kclient.common.uuid import Uuid
from kclient.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

UNKNOWN_TOPIC, INVALID_REQUEST, DISABLED, UNKNOWN_ID = 3, 42, 73, 100


def delete(handlers: Handlers, *wanted: DeleteTopicState | str, version: int = 6) -> list[Any]:
    states = [DeleteTopicState(name=each) if isinstance(each, str) else each for each in wanted]
    request = (
        DeleteTopicsRequest(topics=states)
        if version >= 6
        else DeleteTopicsRequest(topic_names=[state.name or "" for state in states])
    )
    responses: list[Any] = handlers.ask(delete_topics, request, version).responses
    return responses


def names(handlers: Handlers) -> list[str]:
    return [image.name for image in handlers.topics.cache.topics()]


@pytest.mark.parametrize("version", [1, 4, 5, 6])
def test_a_topic_that_fails_keeps_no_other_from_being_deleted(handlers: Handlers, version: int) -> None:
    for name in ("a", "b", "kept"):
        handlers.topics.create(name, 1)
    results = delete(handlers, "a", "none", "b", version=version)
    assert [(result.name, result.error_code) for result in results] == [
        ("a", 0),
        ("none", UNKNOWN_TOPIC),
        ("b", 0),
    ]
    assert names(handlers) == ["kept"]
    assert {tp.topic for tp in handlers.topics.led()} == {"kept"}


def test_a_topic_that_is_named_twice_is_deleted_once(handlers: Handlers) -> None:
    handlers.topics.create("a", 1)
    assert [result.error_code for result in delete(handlers, "a", "a")] == [0, UNKNOWN_TOPIC]


def test_a_topic_deleted_by_name_or_id_is_told_with_both(handlers: Handlers) -> None:
    one, two = handlers.topics.create("one", 1), handlers.topics.create("two", 1)
    results = delete(handlers, "one", DeleteTopicState(name=None, topic_id=two.id))
    assert [(result.name, result.topic_id, result.error_message) for result in results] == [
        ("one", one.id, None),
        ("two", two.id, None),
    ]


@pytest.mark.parametrize("wanted", [Uuid.ZERO, Uuid.random()], ids=["zero", "some"])
def test_an_id_that_no_topic_has_is_told_without_a_name(handlers: Handlers, wanted: Uuid) -> None:
    (result,) = delete(handlers, DeleteTopicState(name=None, topic_id=wanted))
    assert (result.name, result.topic_id, result.error_code) == (None, wanted, UNKNOWN_ID)
    assert str(wanted) in result.error_message


def test_a_name_and_an_id_together_are_refused_even_if_they_are_of_one_topic(handlers: Handlers) -> None:
    image = handlers.topics.create("a", 1)
    (result,) = delete(handlers, DeleteTopicState(name="a", topic_id=image.id))
    assert result.error_code == INVALID_REQUEST
    assert names(handlers) == ["a"]


def test_where_topics_may_not_be_deleted_only_those_that_are_there_are_refused_for_that(
    make_handlers: Callable[..., Handlers],
) -> None:
    handlers = make_handlers(delete_topic_enable=False)
    image = handlers.topics.create("a", 1)
    by_id = DeleteTopicState(name=None, topic_id=image.id)
    results = delete(handlers, "a", by_id, "none")
    assert [(result.name, result.error_code) for result in results] == [
        ("a", DISABLED), ("a", DISABLED), ("none", UNKNOWN_TOPIC),
    ]  # fmt: skip
    assert names(handlers) == ["a"]
