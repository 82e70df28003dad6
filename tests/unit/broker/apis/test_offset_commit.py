"""OffsetCommit: what is committed of a request, and the words in which old clients are told errors."""

from __future__ import annotations

from typing import Any

import pytest

from harness.broker.handlers import Handlers
from kclient.broker.apis.offset_commit import offset_commit
from kclient.broker.group.group import CommittedOffset
from kclient.common.topic_partition import TopicPartition
from kclient.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

pytestmark = pytest.mark.usefixtures("coordinator")

UNKNOWN_TOPIC, METADATA_TOO_LARGE, ILLEGAL_GENERATION, INVALID_GROUP_ID, UNKNOWN_MEMBER = 3, 12, 22, 24, 25
NOT_COORDINATOR = 16
MAX_INT64 = 2**63 - 1
T0 = TopicPartition("t", 0)


def commit(
    handlers: Handlers, *partitions: OffsetCommitRequestPartition, version: int = 8, **fields: Any
) -> list[tuple[str, int, int]]:
    """Commit in topic t (offset 5 of partition 0 if none is given); (topic, partition, code)s of the answer."""
    parts = list(partitions) or [OffsetCommitRequestPartition(partition_index=0, committed_offset=5)]
    given = {"group_id": "g", "topics": [OffsetCommitRequestTopic(name="t", partitions=parts)], **fields}
    answer = handlers.ask(offset_commit, OffsetCommitRequest(**given), version)
    return [
        (topic.name, part.partition_index, part.error_code)
        for topic in answer.topics
        for part in topic.partitions
    ]


def committed(handlers: Handlers, tp: TopicPartition = T0) -> CommittedOffset:
    found = handlers.groups.offsets.fetch("g", [tp])[tp]
    assert found is not None
    return found


@pytest.fixture
def topic(handlers: Handlers) -> Handlers:
    handlers.topics.create()
    return handlers


def test_an_offset_is_committed_in_every_version(topic: Handlers) -> None:
    for version in range(2, 9):
        part = OffsetCommitRequestPartition(
            partition_index=1, committed_offset=version, committed_leader_epoch=3, committed_metadata="note"
        )
        assert commit(topic, part, version=version) == [("t", 1, 0)]
        found = committed(topic, TopicPartition("t", 1))
        epoch = 3 if version >= 6 else -1
        assert (found.offset, found.metadata, found.leader_epoch) == (version, "note", epoch)


def test_partitions_that_are_not_there_fail_alone(topic: Handlers) -> None:
    parts = [
        OffsetCommitRequestPartition(partition_index=number, committed_offset=5) for number in (2, 0, -1)
    ]
    asked = [OffsetCommitRequestTopic(name=name, partitions=parts) for name in ("none", "t")]
    assert commit(topic, topics=asked) == [
        *[("none", number, UNKNOWN_TOPIC) for number in (2, 0, -1)],
        ("t", 2, UNKNOWN_TOPIC), ("t", 0, 0), ("t", -1, UNKNOWN_TOPIC),
    ]  # fmt: skip


def test_a_note_that_is_null_is_kept_as_an_empty_one(topic: Handlers) -> None:
    commit(
        topic, OffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata=None)
    )
    assert committed(topic).metadata == ""


def test_a_note_that_is_too_long_fails_beside_what_is_not_there(topic: Handlers) -> None:
    note = OffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata="x" * 5000)
    missing = OffsetCommitRequestPartition(partition_index=9, committed_offset=5)
    fine = OffsetCommitRequestPartition(partition_index=1, committed_offset=5)
    assert [code for _, _, code in commit(topic, note, missing, fine)] == [
        METADATA_TOO_LARGE,
        UNKNOWN_TOPIC,
        0,
    ]


@pytest.mark.parametrize(("version", "expires_in_ms"), [(2, 60_000), (4, 60_000), (5, None)])
def test_only_old_versions_say_how_long_an_offset_is_kept(
    topic: Handlers, version: int, expires_in_ms: int | None
) -> None:
    commit(topic, version=version, retention_time_ms=60_000)
    expires_ms = -1 if expires_in_ms is None else topic.time.wall_ms() + expires_in_ms
    assert committed(topic).expire_timestamp_ms == expires_ms


def test_an_offset_that_is_to_be_kept_for_ever_is_kept_as_long_as_can_be_told(topic: Handlers) -> None:
    assert commit(topic, version=4, retention_time_ms=MAX_INT64) == [("t", 0, 0)]
    assert (committed(topic).offset, committed(topic).expire_timestamp_ms) == (5, MAX_INT64)


def test_a_group_that_is_not_there_is_told_as_a_generation_that_is_over(topic: Handlers) -> None:
    assert commit(topic, generation_id_or_member_epoch=3, member_id="m") == [("t", 0, ILLEGAL_GENERATION)]


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"group_id": ""}, INVALID_GROUP_ID),
        ({"member_id": "m", "generation_id_or_member_epoch": 1}, UNKNOWN_MEMBER),
    ],
    ids=["no group id", "no member of the group"],
)
def test_an_error_of_the_group_is_told_for_each_partition_that_is_there(
    topic: Handlers, fields: dict[str, Any], error: int
) -> None:
    topic.member("g")
    parts = [OffsetCommitRequestPartition(partition_index=number, committed_offset=5) for number in (0, 7, 1)]
    assert [code for _, _, code in commit(topic, *parts, **fields)] == [error, UNKNOWN_TOPIC, error]


def test_a_member_commits_in_its_generation(topic: Handlers) -> None:
    joined = topic.member("g", instance_id="static")
    who = {"member_id": joined.member_id, "group_instance_id": "static"}
    assert commit(topic, **who, generation_id_or_member_epoch=joined.generation_id) == [("t", 0, 0)]
    assert commit(topic, **who, generation_id_or_member_epoch=joined.generation_id + 1) == [
        ("t", 0, ILLEGAL_GENERATION)
    ]


def test_a_group_that_could_not_be_read_is_not_begun_anew(topic: Handlers) -> None:
    topic.lose_groups()
    assert commit(topic) == [("t", 0, NOT_COORDINATOR)]


def test_nothing_to_commit_is_no_error(topic: Handlers) -> None:
    assert commit(topic, topics=[]) == []
