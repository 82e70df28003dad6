"""Commits of a group: who may make them, and how long they stay."""

from __future__ import annotations

import pytest

from harness.broker.groups import RETENTION_MS, GroupHarness
from kclient.broker.group.group_store import java_hash
from kclient.broker.group.offsets import Committer, OffsetToCommit
from kclient.common.topic_partition import TopicPartition
from kclient.errors import (
    Errors,
    FencedInstanceIdError,
    GroupIdNotFoundError,
    IllegalGenerationError,
    InvalidGroupIdError,
    NotCoordinatorError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)

TP = TopicPartition("t", 0)
OTHER = TopicPartition("t", 1)
ALONE = Committer()


@pytest.fixture
def harness() -> GroupHarness:
    return GroupHarness()


def test_somebody_without_a_group_commits_and_reads_back(harness: GroupHarness) -> None:
    offsets = harness.coordinator.offsets
    assert offsets.commit("g", ALONE, {TP: OffsetToCommit(5, 2, "note")}) == {TP: 0}
    found = offsets.fetch("g", [TP, OTHER])
    assert found[OTHER] is None
    committed = found[TP]
    assert committed is not None
    assert (committed.offset, committed.leader_epoch, committed.metadata) == (5, 2, "note")
    assert list(offsets.fetch("g", None)) == [TP]


def test_a_group_that_is_not_there_has_no_offsets_and_no_error(harness: GroupHarness) -> None:
    assert harness.coordinator.offsets.fetch("none", [TP]) == {TP: None}
    assert harness.coordinator.offsets.fetch("none", None) == {}


def test_a_commit_that_was_not_written_is_not_there(harness: GroupHarness) -> None:
    harness.store.fail_with = NotCoordinatorError()
    with pytest.raises(NotCoordinatorError):
        harness.coordinator.offsets.commit("g", ALONE, {TP: OffsetToCommit(5)})
    assert harness.coordinator.offsets.fetch("g", [TP]) == {TP: None}


def test_a_note_that_is_too_long_fails_alone(harness: GroupHarness) -> None:
    codes = harness.coordinator.offsets.commit(
        "g", ALONE, {TP: OffsetToCommit(1, -1, "x" * 11), OTHER: OffsetToCommit(2)}
    )
    assert codes == {TP: int(Errors.OFFSET_METADATA_TOO_LARGE), OTHER: 0}


def test_a_generation_of_a_group_that_is_not_there_is_refused(harness: GroupHarness) -> None:
    with pytest.raises(GroupIdNotFoundError):
        harness.coordinator.offsets.commit("none", Committer("m", None, 1), {TP: OffsetToCommit(1)})
    with pytest.raises(InvalidGroupIdError):
        harness.coordinator.offsets.commit("", ALONE, {TP: OffsetToCommit(1)})


def test_only_members_of_the_present_generation_commit(harness: GroupHarness) -> None:
    (leader,) = harness.stable(1)
    commit = harness.coordinator.offsets.commit
    with pytest.raises(UnknownMemberIdError):
        commit("g", ALONE, {TP: OffsetToCommit(1)})
    with pytest.raises(UnknownMemberIdError):
        commit("g", Committer("ghost", None, leader.generation_id), {TP: OffsetToCommit(1)})
    with pytest.raises(IllegalGenerationError):
        commit("g", Committer(leader.member_id, None, leader.generation_id + 1), {TP: OffsetToCommit(1)})
    assert commit("g", Committer(leader.member_id, None, leader.generation_id), {TP: OffsetToCommit(1)}) == {
        TP: 0
    }


def test_the_old_generation_commits_while_a_rebalance_is_prepared_but_not_once_the_new_one_is_there(
    harness: GroupHarness,
) -> None:
    (leader,) = harness.stable(1)
    newcomer = harness.join()
    committer = Committer(leader.member_id, None, leader.generation_id)
    assert harness.coordinator.offsets.commit("g", committer, {TP: OffsetToCommit(1)}) == {TP: 0}
    harness.join(leader.member_id)
    assert newcomer.error == 0
    committer = Committer(leader.member_id, None, leader.generation_id + 1)
    with pytest.raises(RebalanceInProgressError):
        harness.coordinator.offsets.commit("g", committer, {TP: OffsetToCommit(1)})


def test_a_static_member_whose_name_was_taken_cannot_commit(harness: GroupHarness) -> None:
    old = harness.join(instance="i").result
    harness.sync(old, {}, instance_id="i")
    harness.join(instance="i")
    with pytest.raises(FencedInstanceIdError):
        harness.coordinator.offsets.commit(
            "g", Committer(old.member_id, "i", old.generation_id), {TP: OffsetToCommit(1)}
        )


def test_offsets_of_a_group_without_members_expire_and_the_group_with_them(harness: GroupHarness) -> None:
    offsets = harness.coordinator.offsets
    offsets.commit("g", ALONE, {TP: OffsetToCommit(1)})
    harness.pass_time(RETENTION_MS - 1)
    offsets.expire()
    assert offsets.fetch("g", None)
    harness.pass_time(1)
    offsets.expire()
    assert offsets.fetch("g", None) == {}
    assert harness.coordinator.group("g") is None
    assert harness.store.batches[-1][1][0][1] is None, "no tombstone"


def test_offsets_stay_while_there_are_members_that_may_want_them(harness: GroupHarness) -> None:
    (leader,) = harness.stable(1)
    harness.coordinator.offsets.commit(
        "g", Committer(leader.member_id, None, leader.generation_id), {TP: OffsetToCommit(1)}
    )
    for _ in range(RETENTION_MS // 5000 + 1):
        harness.pass_time(5000)
        harness.heartbeat(leader)
    harness.coordinator.offsets.expire()
    assert harness.coordinator.offsets.fetch("g", None)
    harness.coordinator.leave("g", [(leader.member_id, None)])
    harness.pass_time(RETENTION_MS - 1)  # since the group became empty, not since the commit
    harness.coordinator.offsets.expire()
    assert harness.coordinator.offsets.fetch("g", None)


def test_an_offset_with_a_retention_of_its_own_keeps_to_it(harness: GroupHarness) -> None:
    harness.coordinator.offsets.commit("g", ALONE, {TP: OffsetToCommit(1, retention_ms=50_000)})
    harness.pass_time(49_999)
    harness.coordinator.offsets.expire()
    assert harness.coordinator.offsets.fetch("g", None)
    harness.pass_time(1)
    harness.coordinator.offsets.expire()
    assert not harness.coordinator.offsets.fetch("g", None)


def test_offsets_in_deleted_topics_go(harness: GroupHarness) -> None:
    harness.coordinator.offsets.commit(
        "g", ALONE, {TP: OffsetToCommit(1), TopicPartition("u", 0): OffsetToCommit(2)}
    )
    harness.coordinator.offsets.partitions_deleted([TP, OTHER])
    assert list(harness.coordinator.offsets.fetch("g", None)) == [TopicPartition("u", 0)]


def test_offsets_of_topics_that_members_read_cannot_be_deleted(harness: GroupHarness) -> None:
    offsets = harness.coordinator.offsets
    (leader,) = harness.stable(1)  # its metadata says nothing that can be read, so it may read anything
    offsets.commit("g", Committer(leader.member_id, None, leader.generation_id), {TP: OffsetToCommit(1)})
    assert offsets.delete("g", [TP]) == {TP: int(Errors.GROUP_SUBSCRIBED_TO_TOPIC)}
    harness.coordinator.leave("g", [(leader.member_id, None)])
    assert offsets.delete("g", [TP, OTHER]) == {TP: 0, OTHER: 0}
    assert offsets.fetch("g", None) == {}
    with pytest.raises(GroupIdNotFoundError):
        offsets.delete("none", [TP])


@pytest.mark.parametrize(
    ("text", "value"),
    [("", 0), ("a", 97), ("perf", 3437289), ("polygenelubricants", -2147483648), ("ü€😀", 377600517)],
)
def test_the_hash_that_chooses_a_groups_partition_is_javas(text: str, value: int) -> None:
    # Reference values follow Java's definition: s[0]*31^(n-1) + ... + s[n-1] over UTF-16 units, in 32 bits.
    units = text.encode("utf-16-be")
    total = 0
    for index in range(0, len(units), 2):
        total = (total * 31 + int.from_bytes(units[index : index + 2], "big")) % 2**32
    assert java_hash(text) == (total - 2**32 if total >= 2**31 else total)
    if text.isascii():
        assert java_hash(text) == value
