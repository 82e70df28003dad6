"""Groups of a directory that stays as it is: members come and go, offsets stay."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness.broker.topics import Topics
from harness.mock_time import MockTime
from kclient.broker.group.group import CommittedOffset, Group
from kclient.broker.group.group_store import GroupStore, group_entry, group_tombstones, offset_entry
from kclient.broker.group.read_only_group_store import ReadOnlyGroupStore
from kclient.broker.metadata.topic_names import OFFSETS_TOPIC
from kclient.common.topic_partition import TopicPartition
from kclient.errors import PolicyViolationError
from kclient.utils.log_context import LogContext

T0 = TopicPartition("t", 0)
COMMITTED = CommittedOffset(7, 3, "a note", 1000)


class Kept(Topics):
    """A store over what another one has written."""

    def opened(self, kind: type[GroupStore]) -> GroupStore:
        return kind(self.controller, self.replicas, MockTime(), LogContext())


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    with ExitStack() as stack:
        yield Kept(tmp_path, stack, offsets_topic_num_partitions=2)


def end_offsets(kept: Kept) -> list[int]:
    return [log.log_end_offset for log in kept.replicas.log_manager.all_logs()]


def test_what_was_committed_is_there_and_stays(kept: Kept) -> None:
    writer = kept.opened(GroupStore)
    writer.create_topic()
    writer.write("g", [offset_entry("g", T0, COMMITTED)])
    before = end_offsets(kept)
    store = kept.opened(ReadOnlyGroupStore)
    group = store.load()["g"]
    assert group.offsets == {T0: COMMITTED}
    store.write("g", [group_entry(group, {})])
    for refused in ([offset_entry("g", T0, COMMITTED)], group_tombstones(group, [T0], whole=True)):
        with pytest.raises(PolicyViolationError, match="opened read-only"):
            store.write("g", refused)
    assert end_offsets(kept) == before


def test_where_there_is_no_topic_for_offsets_none_is_made(kept: Kept) -> None:
    store = kept.opened(ReadOnlyGroupStore)
    assert store.partition_for("g") == TopicPartition(OFFSETS_TOPIC, 0)
    store.write("g", [group_entry(Group("g", 500), {})])
    assert (store.load(), kept.cache.topics()) == ({}, [])
