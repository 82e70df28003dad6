"""OffsetDelete: topics that members read, partitions that are not there, and groups that are not."""

from __future__ import annotations

from typing import Any

import pytest

from harness.broker.handlers import Handlers
from kclient.broker.apis.offset_delete import offset_delete
from kclient.broker.group.offsets import Committer, OffsetToCommit
from kclient.common.topic_partition import TopicPartition
from kclient.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)

pytestmark = pytest.mark.usefixtures("coordinator")

UNKNOWN_TOPIC, INVALID_GROUP_ID, NOT_EMPTY, NOT_FOUND, SUBSCRIBED = 3, 24, 68, 69, 86


def ask(handlers: Handlers, wanted: dict[str, list[int]], group_id: str = "g") -> Any:
    topics = [
        OffsetDeleteRequestTopic(
            name=name, partitions=[OffsetDeleteRequestPartition(partition_index=number) for number in numbers]
        )
        for name, numbers in wanted.items()
    ]
    return handlers.ask(offset_delete, OffsetDeleteRequest(group_id=group_id, topics=topics), 0)


def codes(answer: Any) -> list[tuple[str, int, int]]:
    assert answer.error_code == 0
    return [
        (topic.name, part.partition_index, part.error_code)
        for topic in answer.topics
        for part in topic.partitions
    ]


def left(handlers: Handlers) -> list[tuple[str, int]]:
    return sorted((tp.topic, tp.partition) for tp in handlers.groups.offsets.fetch("g", None))


@pytest.fixture
def committed(handlers: Handlers) -> Handlers:
    """Group g with offsets in both partitions of topics t and u."""
    for name in ("t", "u"):
        handlers.topics.create(name)
    tps = [TopicPartition(name, number) for name in ("t", "u") for number in (0, 1)]
    handlers.groups.offsets.commit("g", Committer(), {tp: OffsetToCommit(1) for tp in tps})
    return handlers


def test_only_offsets_that_are_named_are_deleted(committed: Handlers) -> None:
    assert codes(ask(committed, {"u": [1], "t": [0]})) == [("u", 1, 0), ("t", 0, 0)]
    assert left(committed) == [("t", 1), ("u", 0)]


def test_a_partition_that_is_named_twice_is_deleted_once(committed: Handlers) -> None:
    assert codes(ask(committed, {"t": [0, 0]})) == [("t", 0, 0), ("t", 0, 0)]
    assert left(committed) == [("t", 1), ("u", 0), ("u", 1)]


def test_partitions_that_are_not_there_fail_alone(committed: Handlers) -> None:
    assert codes(ask(committed, {"none": [0], "t": [2, 0, -1]})) == [
        ("none", 0, UNKNOWN_TOPIC), ("t", 2, UNKNOWN_TOPIC), ("t", 0, 0), ("t", -1, UNKNOWN_TOPIC),
    ]  # fmt: skip
    assert left(committed) == [("t", 1), ("u", 0), ("u", 1)]


def test_topics_that_members_read_fail_alone(committed: Handlers) -> None:
    committed.member("g", ["t"])
    assert codes(ask(committed, {"t": [0], "u": [0]})) == [("t", 0, SUBSCRIBED), ("u", 0, 0)]
    assert left(committed) == [("t", 0), ("t", 1), ("u", 1)]


def test_an_offset_that_was_never_committed_is_deleted_without_an_error(committed: Handlers) -> None:
    assert codes(ask(committed, {"t": [0]})) == codes(ask(committed, {"t": [0]})) == [("t", 0, 0)]


@pytest.mark.parametrize(
    ("group_id", "error"), [("", INVALID_GROUP_ID), ("none", NOT_FOUND), ("connect", NOT_EMPTY)]
)
def test_an_error_of_the_group_is_told_once_for_all(committed: Handlers, group_id: str, error: int) -> None:
    committed.member("connect", protocol_type="connect")
    answer = ask(committed, {"t": [0], "none": [0]}, group_id)
    assert (answer.error_code, answer.topics) == (error, [])


def test_no_partitions_are_no_error(committed: Handlers) -> None:
    assert codes(ask(committed, {})) == []
    assert len(left(committed)) == 4
