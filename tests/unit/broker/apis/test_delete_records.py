"""DeleteRecords: which topics records may be taken from, each partition by itself."""

from __future__ import annotations

from typing import Any

import pytest

from harness.broker.handlers import Handlers
from harness.broker.logs import append_alone
from kclient.broker.apis.delete_records import delete_records
from kclient.broker.metadata.topic_names import INTERNAL_TOPICS, OFFSETS_TOPIC
from kclient.common.topic_partition import TopicPartition
from kclient.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kclient.record import MemoryRecordsBuilder

OUT_OF_RANGE, UNKNOWN_TOPIC, INVALID_TOPIC, POLICY_VIOLATION = 1, 3, 17, 44


def filled(handlers: Handlers, name: str = "t", **configs: str) -> None:
    """Make a topic of two partitions with three records each."""
    settings = {key.replace("_", "."): value for key, value in configs.items()}
    handlers.topics.create(name, 2, configs=settings)
    for number in (0, 1):
        log = handlers.topics.replicas.partition(TopicPartition(name, number)).log
        append_alone(log, _three_records())


def _three_records() -> bytes:
    # With keys, as compacted topics take no others.
    builder = MemoryRecordsBuilder()
    for value in (b"a", b"b", b"c"):
        builder.append(1, b"k", value)
    return builder.close()


def delete(handlers: Handlers, wanted: dict[str, list[tuple[int, int]]], version: int = 2) -> list[Any]:
    """Ask for (partition, offset) by topic; the answers (topic, partition, error, low watermark)."""
    request = DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(
                name=name,
                partitions=[
                    DeleteRecordsPartition(partition_index=number, offset=at) for number, at in parts
                ],
            )
            for name, parts in wanted.items()
        ]
    )
    return [
        (topic.name, part.partition_index, part.error_code, part.low_watermark)
        for topic in handlers.ask(delete_records, request, version).topics
        for part in topic.partitions
    ]


def test_each_partition_succeeds_or_fails_by_itself(handlers: Handlers) -> None:
    filled(handlers)
    assert delete(handlers, {"none": [(0, 1)], "t": [(1, 2), (2, 1), (0, 4)]}) == [
        ("none", 0, UNKNOWN_TOPIC, -1), ("t", 1, 0, 2), ("t", 2, UNKNOWN_TOPIC, -1), ("t", 0, OUT_OF_RANGE, -1),
    ]  # fmt: skip


@pytest.mark.parametrize(("offset", "start"), [(0, 0), (3, 3), (-1, 3)])
def test_offsets_from_the_start_to_the_high_watermark_can_be_the_new_start(
    handlers: Handlers, offset: int, start: int
) -> None:
    filled(handlers)
    assert delete(handlers, {"t": [(0, offset)]}) == [("t", 0, 0, start)]


@pytest.mark.parametrize("offset", [-2, 4, 2**63 - 1, -(2**63)])
def test_other_offsets_are_out_of_range(handlers: Handlers, offset: int) -> None:
    filled(handlers)
    assert delete(handlers, {"t": [(0, offset)]}) == [("t", 0, OUT_OF_RANGE, -1)]


@pytest.mark.parametrize("name", sorted(INTERNAL_TOPICS))
def test_the_brokers_own_topics_are_left_alone_whether_they_are_there_or_not(
    handlers: Handlers, name: str
) -> None:
    handlers.groups.coordinator_partition("g")
    assert OFFSETS_TOPIC in {image.name for image in handlers.topics.cache.topics()}
    assert delete(handlers, {name: [(0, -1)]}) == [(name, 0, INVALID_TOPIC, -1)]


def test_from_a_topic_that_is_only_compacted_nothing_may_be_missing(handlers: Handlers) -> None:
    filled(handlers, "compacted", cleanup_policy="compact")
    filled(handlers, "both", cleanup_policy="compact,delete")
    assert delete(handlers, {"compacted": [(0, 1)], "both": [(0, 1)]}) == [
        ("compacted", 0, POLICY_VIOLATION, -1),
        ("both", 0, 0, 1),
    ]


def test_a_partition_that_comes_twice_is_cut_twice_and_never_grows_back(handlers: Handlers) -> None:
    filled(handlers)
    assert delete(handlers, {"t": [(0, 2), (0, 1)]}, version=0) == [("t", 0, 0, 2), ("t", 0, 0, 2)]
