"""CreatePartitions: topics of one request that grow or stay, each by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from harness.broker.handlers import Handlers
from harness.broker.topics import NODE
from kclient.broker.apis.create_partitions import create_partitions
from kclient.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)

UNKNOWN_TOPIC, INVALID_PARTITIONS, INVALID_ASSIGNMENT, INVALID_REQUEST = 3, 37, 39, 42
POLICY_VIOLATION = 44


def grow(
    handlers: Handlers,
    *topics: tuple[str, int],
    assigned: Sequence[Sequence[int]] | None = None,
    validate_only: bool = False,
    version: int = 3,
) -> list[Any]:
    assignments = (
        None if assigned is None else [CreatePartitionsAssignment(broker_ids=list(ids)) for ids in assigned]
    )
    request = CreatePartitionsRequest(
        topics=[
            CreatePartitionsTopic(name=name, count=count, assignments=assignments) for name, count in topics
        ],
        validate_only=validate_only,
    )
    results: list[Any] = handlers.ask(create_partitions, request, version).results
    return results


def count(handlers: Handlers, name: str = "t") -> int:
    return handlers.topics.cache.existing_topic(name).partition_count


@pytest.fixture
def topic(handlers: Handlers) -> Handlers:
    handlers.topics.create("t", 2)
    return handlers


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_a_topic_has_the_number_of_partitions_that_was_asked_for_in_all(
    topic: Handlers, version: int
) -> None:
    (result,) = grow(topic, ("t", 4), version=version)
    assert (result.name, result.error_code, result.error_message) == ("t", 0, None)
    assert count(topic) == 4
    assert topic.led("t", 3).log.log_end_offset == 0


def test_each_topic_grows_or_fails_by_itself_in_the_order_of_the_request(topic: Handlers) -> None:
    topic.topics.create("u", 1)
    results = grow(topic, ("none", 9), ("t", 2), ("u", 3))
    assert [(result.name, result.error_code) for result in results] == [
        ("none", UNKNOWN_TOPIC),
        ("t", INVALID_PARTITIONS),
        ("u", 0),
    ]
    assert all(result.error_message for result in results[:2])
    assert (count(topic), count(topic, "u")) == (2, 3)


@pytest.mark.parametrize("counts", [(3, 4), (4, 3), (4, 4)])
def test_a_topic_that_comes_twice_stays_as_it_is_and_is_answered_once(
    topic: Handlers, counts: tuple[int, int]
) -> None:
    topic.topics.create("u", 1)
    results = grow(topic, ("t", counts[0]), ("u", 2), ("t", counts[1]))
    assert [(result.name, result.error_code) for result in results] == [("t", INVALID_REQUEST), ("u", 0)]
    assert "more than once" in results[0].error_message
    assert (count(topic), count(topic, "u")) == (2, 2)


@pytest.mark.parametrize(
    ("assigned", "error"),
    [
        pytest.param([[NODE], [NODE]], 0, id="one for each new partition"),
        pytest.param([[NODE]], INVALID_ASSIGNMENT, id="too few"),
        pytest.param([], INVALID_ASSIGNMENT, id="none, which is not the same as nothing said"),
        pytest.param([[NODE], [7]], INVALID_ASSIGNMENT, id="another broker"),
        pytest.param([[NODE], []], INVALID_ASSIGNMENT, id="nobody"),
    ],
)
def test_an_assignment_is_for_the_new_partitions_alone(
    topic: Handlers, assigned: list[list[int]], error: int
) -> None:
    (result,) = grow(topic, ("t", 4), assigned=assigned)
    assert result.error_code == error
    assert count(topic) == (2 if error else 4)


def test_validating_finds_the_same_errors_and_changes_nothing(topic: Handlers) -> None:
    assert [result.error_code for result in grow(topic, ("t", 4), validate_only=True)] == [0]
    assert [result.error_code for result in grow(topic, ("t", 1), validate_only=True)] == [INVALID_PARTITIONS]
    assert count(topic) == 2


@pytest.mark.parametrize("wanted", [0, -1, -(2**31)])
def test_a_number_that_no_topic_can_have_is_refused(topic: Handlers, wanted: int) -> None:
    assert [result.error_code for result in grow(topic, ("t", wanted))] == [INVALID_PARTITIONS]
    assert count(topic) == 2


def test_a_request_for_no_topics_has_no_results(handlers: Handlers) -> None:
    assert grow(handlers) == []


def test_the_topics_of_one_request_get_ten_thousand_partitions_together_at_most(topic: Handlers) -> None:
    topic.topics.create("u", 1)
    results = grow(topic, ("t", 6002), ("u", 4002), ("none", 10_000))
    assert [result.error_code for result in results] == [POLICY_VIOLATION] * 3
    assert (count(topic, "t"), count(topic, "u")) == (2, 1)
