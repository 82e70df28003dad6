"""CreateTopics: each topic by itself, and what the answer says of it in each version."""

from __future__ import annotations

from typing import Any

import pytest

from harness.broker.handlers import Handlers
from kclient.broker.apis.create_topics import create_topics
from kclient.common.uuid import Uuid
from kclient.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)

INVALID_TOPIC, TOPIC_EXISTS, INVALID_ASSIGNMENT, INVALID_REQUEST = 17, 36, 39, 42
POLICY_VIOLATION = 44
DYNAMIC, DEFAULT = 1, 5


def topic(name: str, **fields: Any) -> CreatableTopic:
    return CreatableTopic(name=name, **{"num_partitions": 1, "replication_factor": 1, **fields})


def assigned(*partitions: int) -> dict[str, Any]:
    assignments = [
        CreatableReplicaAssignment(partition_index=number, broker_ids=[1]) for number in partitions
    ]
    return {"num_partitions": -1, "replication_factor": -1, "assignments": assignments}


def create(handlers: Handlers, *topics: CreatableTopic, version: int = 7, **fields: Any) -> list[Any]:
    results: list[Any] = handlers.ask(
        create_topics, CreateTopicsRequest(topics=list(topics), **fields), version
    ).topics
    return results


def names(handlers: Handlers) -> list[str]:
    return [image.name for image in handlers.topics.cache.topics()]


def test_a_topic_that_fails_keeps_no_other_from_being_made(handlers: Handlers) -> None:
    results = create(handlers, topic("a"), topic("b/c"), topic("d"), topic("a.b"), topic("a_b"))
    assert [(result.name, result.error_code) for result in results] == [
        ("a", 0), ("b/c", INVALID_TOPIC), ("d", 0), ("a.b", 0), ("a_b", INVALID_TOPIC),
    ]  # fmt: skip
    assert names(handlers) == ["a", "a.b", "d"]


def test_a_topic_that_is_named_twice_fails_once_and_is_not_made(handlers: Handlers) -> None:
    results = create(handlers, topic("twice"), topic("once"), topic("twice", num_partitions=2))
    assert [(result.name, result.error_code) for result in results] == [
        ("twice", INVALID_REQUEST),
        ("once", 0),
    ]
    assert "twice" in results[0].error_message
    assert names(handlers) == ["once"]


def test_a_partition_that_is_assigned_twice_is_refused(handlers: Handlers) -> None:
    (result,) = create(handlers, topic("t", **assigned(0, 1, 1)))
    assert (result.error_code, result.error_message) == (
        INVALID_ASSIGNMENT,
        "A partition is assigned more than once",
    )
    assert names(handlers) == []


def test_an_assignment_says_the_number_of_partitions(handlers: Handlers) -> None:
    (result,) = create(handlers, topic("t", **assigned(1, 0)))
    assert (result.error_code, result.num_partitions, result.replication_factor) == (0, 2, 1)


def test_the_answer_describes_the_topic_that_was_made(handlers: Handlers) -> None:
    given = [
        CreatableTopicConfig(name="retention.ms", value="5"),
        CreatableTopicConfig(name="segment.ms", value=None),
    ]
    (result,) = create(handlers, topic("t", num_partitions=-1, replication_factor=-1, configs=given))
    image = handlers.topics.cache.existing_topic("t")
    assert (result.topic_id, result.num_partitions, result.replication_factor) == (image.id, 3, 1)
    assert result.error_message is None
    told = {config.name: (config.value, config.config_source) for config in result.configs}
    assert told["retention.ms"] == ("5", DYNAMIC)
    assert told["segment.ms"][1] == DEFAULT, "null asks for the default"


def test_validating_tells_what_would_be_and_makes_nothing(handlers: Handlers) -> None:
    results = create(handlers, topic("t", num_partitions=-1), topic("b/c"), validate_only=True)
    assert [(result.error_code, result.num_partitions) for result in results] == [(0, 3), (INVALID_TOPIC, -1)]
    assert names(handlers) == []


def test_a_topic_that_is_there_is_left_as_it_is(handlers: Handlers) -> None:
    made = handlers.topics.create("t", 2)
    (result,) = create(handlers, topic("t", num_partitions=9))
    assert (result.error_code, result.num_partitions, result.topic_id) == (TOPIC_EXISTS, -1, Uuid.ZERO)
    assert handlers.topics.cache.existing_topic("t") == made


@pytest.mark.parametrize(
    ("version", "tells_settings", "tells_id"),
    [(2, False, False), (4, False, False), (5, True, False), (7, True, True)],
)
def test_older_versions_tell_less(
    handlers: Handlers, version: int, tells_settings: bool, tells_id: bool
) -> None:
    (result,) = create(handlers, topic("t"), version=version)
    assert result.error_code == 0
    assert (bool(result.configs), result.num_partitions) == (tells_settings, 1 if tells_settings else -1)
    assert (result.topic_id != Uuid.ZERO) == tells_id


def test_no_topics_are_no_error(handlers: Handlers) -> None:
    assert create(handlers) == []


def test_the_topics_of_one_request_have_ten_thousand_partitions_together_at_most(handlers: Handlers) -> None:
    results = create(handlers, topic("a", num_partitions=5000), topic("b", num_partitions=5000), topic("c"))
    assert [result.error_code for result in results] == [POLICY_VIOLATION] * 3
    assert names(handlers) == []


def test_assigned_and_default_numbers_of_partitions_count_as_well(handlers: Handlers) -> None:
    results = create(handlers, topic("a", num_partitions=9999), topic("b", **assigned(0, 1)), topic("c"))
    assert [result.error_code for result in results] == [POLICY_VIOLATION] * 3
    default = {"num_partitions": -1, "replication_factor": -1}
    results = create(handlers, topic("a", num_partitions=10_000), topic("b", **default))
    assert [result.error_code for result in results] == [POLICY_VIOLATION] * 2
