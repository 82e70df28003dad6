"""OffsetFetch: offsets of one group or many, and errors where each version has a place for them."""

from __future__ import annotations

from typing import Any

import pytest

from harness.broker.handlers import Handlers
from kclient.broker.apis.offset_fetch import offset_fetch
from kclient.broker.group.offsets import Committer, OffsetToCommit
from kclient.common.topic_partition import TopicPartition
from kclient.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

pytestmark = pytest.mark.usefixtures("coordinator")

NOT_COORDINATOR, INVALID_GROUP_ID = 16, 24

Wanted = dict[str, list[int]]


def fetch(handlers: Handlers, wanted: Wanted | None, group_id: str = "g", version: int = 7) -> Any:
    """The answer to a request for one group, up to version 7."""
    topics = None
    if wanted is not None:
        topics = [
            OffsetFetchRequestTopic(name=name, partition_indexes=numbers) for name, numbers in wanted.items()
        ]
    return handlers.ask(offset_fetch, OffsetFetchRequest(group_id=group_id, topics=topics), version)


def fetch_groups(handlers: Handlers, *groups: tuple[str, Wanted | None]) -> list[Any]:
    """The groups of the answer to a request for many."""
    asked = [
        OffsetFetchRequestGroup(
            group_id=name,
            topics=None
            if wanted is None
            else [
                OffsetFetchRequestTopics(name=topic, partition_indexes=numbers)
                for topic, numbers in wanted.items()
            ],
        )
        for name, wanted in groups
    ]
    found: list[Any] = handlers.ask(offset_fetch, OffsetFetchRequest(groups=asked), 8).groups
    return found


def told(answer: Any) -> dict[str, list[tuple[int, int, int]]]:
    """Partition, offset and code by topic."""
    return {
        topic.name: [
            (part.partition_index, part.committed_offset, part.error_code) for part in topic.partitions
        ]
        for topic in answer.topics
    }


@pytest.fixture
def committed(handlers: Handlers) -> Handlers:
    """Group g with offsets 5 and 6 in t, and 7 in u."""
    for name in ("t", "u"):
        handlers.topics.create(name)
    offsets = {TopicPartition("t", 0): 5, TopicPartition("t", 1): 6, TopicPartition("u", 1): 7}
    handlers.groups.offsets.commit(
        "g", Committer(), {tp: OffsetToCommit(offset, 3, f"note {offset}") for tp, offset in offsets.items()}
    )
    return handlers


def test_an_offset_comes_with_what_each_version_tells_of_it(committed: Handlers) -> None:
    for version in range(1, 8):
        (topic,) = fetch(committed, {"u": [1]}, version=version).topics
        (part,) = topic.partitions
        assert (part.committed_offset, part.metadata, part.error_code) == (7, "note 7", 0)
        assert part.committed_leader_epoch == (3 if version >= 5 else -1)


def test_what_was_not_committed_has_offset_minus_1_and_no_error(committed: Handlers) -> None:
    answer = fetch(committed, {"t": [0, 9], "none": [0]})
    assert told(answer) == {"t": [(0, 5, 0), (9, -1, 0)], "none": [(0, -1, 0)]}
    assert answer.error_code == 0
    assert [part.metadata for topic in answer.topics for part in topic.partitions] == ["note 5", "", ""]


def test_a_group_that_is_not_there_has_committed_nothing(committed: Handlers) -> None:
    assert told(fetch(committed, {"t": [0]}, "none")) == {"t": [(0, -1, 0)]}
    assert told(fetch(committed, None, "none")) == {}


def test_no_topics_mean_all_and_an_empty_list_none(committed: Handlers) -> None:
    assert told(fetch(committed, None)) == {"t": [(0, 5, 0), (1, 6, 0)], "u": [(1, 7, 0)]}
    assert told(fetch(committed, {})) == {}
    everything, nothing = fetch_groups(committed, ("g", None), ("g", {}))
    assert (len(told(everything)), told(nothing)) == (2, {})


def test_each_group_is_found_or_fails_by_itself(committed: Handlers) -> None:
    groups = fetch_groups(committed, ("g", {"t": [1]}), ("", {"t": [1]}), ("none", {"t": [1]}))
    assert [(group.group_id, group.error_code, told(group)) for group in groups] == [
        ("g", 0, {"t": [(1, 6, 0)]}), ("", INVALID_GROUP_ID, {}), ("none", 0, {"t": [(1, -1, 0)]}),
    ]  # fmt: skip


def test_offsets_that_could_not_be_read_are_an_error_and_not_uncommitted(committed: Handlers) -> None:
    committed.lose_groups()
    in_version_1, in_version_2 = (fetch(committed, {"t": [0, 1]}, "other", version) for version in (1, 2))
    assert (
        told(in_version_1)
        == told(in_version_2)
        == {"t": [(0, -1, NOT_COORDINATOR), (1, -1, NOT_COORDINATOR)]}
    )
    assert in_version_2.error_code == NOT_COORDINATOR
    everything = fetch(committed, None, "other", 2)
    assert (everything.error_code, everything.topics) == (NOT_COORDINATOR, [])
    (group,) = fetch_groups(committed, ("other", None))
    assert (group.error_code, group.topics) == (NOT_COORDINATOR, [])


def test_an_empty_group_id_is_told_of_in_every_version(committed: Handlers) -> None:
    for version in (2, 7):
        assert fetch(committed, {"t": [0]}, "", version).error_code == INVALID_GROUP_ID
    assert told(fetch(committed, {"t": [0], "u": [1]}, "", 1)) == {
        "t": [(0, -1, INVALID_GROUP_ID)],
        "u": [(1, -1, INVALID_GROUP_ID)],
    }
