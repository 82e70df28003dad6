"""Groups as records: what is written is what a start reads, and what cannot be read is not taken for nothing."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import attrs
import pytest

from harness.broker.topics import Topics
from harness.mock_time import MockTime
from kclient.broker.group.group import CommittedOffset, Group, GroupState
from kclient.broker.group.group_store import GroupStore, group_entry, group_tombstones, offset_entry
from kclient.broker.group.member import Member
from kclient.broker.metadata.topic_names import OFFSETS_TOPIC
from kclient.common.topic_partition import TopicPartition
from kclient.errors import (
    CoordinatorNotAvailableError,
    InvalidCommitOffsetSizeError,
    KafkaError,
    NotCoordinatorError,
)
from kclient.record import ControlRecordType, EndTransactionMarker, MemoryRecordsBuilder
from kclient.utils.log_context import LogContext

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
COMMITTED = CommittedOffset(7, 3, "a note", 1000)


class Stored(Topics):
    """A store over an offsets topic with two partitions."""

    def __init__(self, root: Path, stack: ExitStack) -> None:
        super().__init__(root, stack, offsets_topic_num_partitions=2)
        self.time = MockTime()
        self.groups = self.started()

    def started(self) -> GroupStore:
        """A store as after a start of the broker."""
        return GroupStore(self.controller, self.replicas, self.time, LogContext())

    def loaded(self) -> dict[str, Group]:
        return self.started().load()

    def append(self, group_id: str, records: bytes) -> None:
        outcome = self.replicas.append_locally(self.groups.partition_for(group_id), records)
        assert outcome.error is None


@pytest.fixture
def new(tmp_path: Path) -> Iterator[Stored]:
    """A store before anybody has looked for a coordinator."""
    with ExitStack() as stack:
        yield Stored(tmp_path, stack)


@pytest.fixture
def stored(new: Stored) -> Stored:
    new.groups.create_topic()
    return new


def group_of(*members: Member, generation: int = 4) -> Group:
    group = Group("g", 500)
    for member in members:
        group.add(member)
    group.generation_id = generation
    group.protocol_type = "consumer"
    group.protocol_name = "range"
    return group


def member(member_id: str, instance_id: str | None = None) -> Member:
    protocols = [("other", b""), ("range", b"topics of " + member_id.encode())]
    return Member(member_id, instance_id, "client", "/host", 30_000, 10_000, "consumer", protocols)


def test_before_anybody_has_looked_for_it_there_is_no_coordinator_and_no_topic(new: Stored) -> None:
    assert new.loaded() == {}
    for step in (new.groups.partition_for, new.groups.check_known):
        with pytest.raises(NotCoordinatorError):
            step("g")
    with pytest.raises(NotCoordinatorError):
        new.groups.write("g", [offset_entry("g", T0, COMMITTED)])
    assert new.cache.topic(OFFSETS_TOPIC) is None


def test_the_topic_is_made_for_who_looks_for_the_coordinator(new: Stored) -> None:
    new.groups.create_topic()
    tp = new.groups.partition_for("g")
    assert new.cache.existing_topic(OFFSETS_TOPIC).partition_count == 2
    assert tp in new.led()


def test_what_is_written_together_is_one_batch(stored: Stored) -> None:
    stored.groups.write("g", [offset_entry("g", tp, COMMITTED) for tp in (T0, T1)])
    log = stored.replicas.partition(stored.groups.partition_for("g")).log
    assert log.log_end_offset == 2
    assert [batch.count for _, batch in log._local.segments.active.batches()] == [2]


@pytest.mark.parametrize("expires_ms", [-1, 9000])
def test_an_offset_comes_back_with_all_that_was_committed_with_it(stored: Stored, expires_ms: int) -> None:
    committed = attrs.evolve(COMMITTED, expire_timestamp_ms=expires_ms)
    stored.groups.write("g", [offset_entry("g", T0, committed)])
    # The one version of the record that has an expiry has no epoch.
    expected = committed if expires_ms == -1 else attrs.evolve(committed, leader_epoch=-1)
    assert stored.loaded()["g"].offsets == {T0: expected}


def test_the_last_word_on_an_offset_counts(stored: Stored) -> None:
    stored.groups.write("g", [offset_entry("g", T0, COMMITTED), offset_entry("g", T1, COMMITTED)])
    stored.groups.write("g", [offset_entry("g", T0, attrs.evolve(COMMITTED, offset=8))])
    stored.groups.write("g", [offset_entry("g", T1, None)])
    assert {tp: each.offset for tp, each in stored.loaded()["g"].offsets.items()} == {T0: 8}


def test_a_group_comes_back_stable_with_its_members_and_what_each_was_assigned(stored: Stored) -> None:
    group = group_of(member("leader"), member("static", "name"))
    stored.groups.write("g", [offset_entry("g", T0, COMMITTED)])
    stored.groups.write("g", [group_entry(group, {"leader": b"l", "static": b"s"})])
    found = stored.loaded()["g"]
    assert found.state is GroupState.STABLE
    assert (found.generation_id, found.protocol_type, found.protocol_name) == (4, "consumer", "range")
    assert (found.leader_id, found.member_id_of("name")) == ("leader", "static")
    assert [(m.assignment, m.metadata_for("range")) for m in found.members.values()] == [
        (b"l", b"topics of leader"),
        (b"s", b"topics of static"),
    ]
    assert [(m.session_timeout_ms, m.rebalance_timeout_ms) for m in found.members.values()] == [
        (10_000, 30_000)
    ] * 2
    assert found.offsets == {T0: COMMITTED}, "which the record of the members says nothing of"


def test_a_group_without_members_comes_back_empty(stored: Stored) -> None:
    stored.groups.write("g", [group_entry(group_of(), {})])
    assert stored.loaded()["g"].state is GroupState.EMPTY


def test_a_deleted_group_keeps_offsets_that_were_not_deleted_and_is_gone_with_them(stored: Stored) -> None:
    group = group_of()
    stored.groups.write(
        "g", [group_entry(group, {}), offset_entry("g", T0, COMMITTED), offset_entry("g", T1, COMMITTED)]
    )
    stored.groups.write("g", group_tombstones(group, [T0], whole=True))
    assert (stored.loaded()["g"].generation_id, set(stored.loaded()["g"].offsets)) == (0, {T1})
    stored.groups.write("g", group_tombstones(group, [T1], whole=False))
    assert stored.loaded() == {}


def test_groups_of_all_partitions_come_back(stored: Stored) -> None:
    names = [f"g{number}" for number in range(10)]
    for name in names:
        stored.groups.write(name, [offset_entry(name, T0, COMMITTED)])
    assert len({stored.groups.partition_for(name) for name in names}) == 2
    assert set(stored.loaded()) == set(names)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (struct.pack(">h", 99), b"of something newer"),
        (b"", b""),
        (struct.pack(">h", 2) + b"\x7f", b"cut"),
        (offset_entry("g", T1, None)[0], struct.pack(">h", 99)),
        (offset_entry("g", T1, None)[0], b"\x00"),
    ],
)
def test_a_record_that_cannot_be_read_is_left_out_and_no_other(
    stored: Stored, key: bytes, value: bytes
) -> None:
    stored.groups.write("g", [(key, value), offset_entry("g", T0, COMMITTED)])
    assert stored.loaded()["g"].offsets == {T0: COMMITTED}


@pytest.mark.parametrize("committed", [True, False])
def test_offsets_in_a_transaction_count_once_it_is_committed(stored: Stored, committed: bool) -> None:
    builder = MemoryRecordsBuilder(producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True)
    key, value = offset_entry("g", T0, COMMITTED)
    builder.append(0, key, value)
    stored.append("g", builder.close())
    assert stored.loaded() == {}, "it is open"
    kind = ControlRecordType.COMMIT if committed else ControlRecordType.ABORT
    stored.append("g", EndTransactionMarker(kind, 1).batch(0, 0, 0, 5, 0))
    assert [group.offsets for group in stored.loaded().values()] == ([{T0: COMMITTED}] if committed else [])


def damaged(stored: Stored, how: str) -> None:
    """Let the partition of group "g" not take what is written."""
    tp = stored.groups.partition_for("g")
    if how == "small":
        stored.controller.alter_configs(OFFSETS_TOPIC, lambda _: {"max.message.bytes": "100"})
        return
    stored.replicas.delete_partition(tp)
    if how == "offline":
        stored.replicas.set_offline(tp, "its disk is gone")


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ("small", InvalidCommitOffsetSizeError),
        ("gone", CoordinatorNotAvailableError),
        ("offline", NotCoordinatorError),
    ],
)
def test_a_write_that_fails_is_told_in_the_words_of_a_coordinator(
    stored: Stored, how: str, error: type[KafkaError], caplog: pytest.LogCaptureFixture
) -> None:
    damaged(stored, how)
    with pytest.raises(error):
        stored.groups.write("g", [offset_entry("g", T0, attrs.evolve(COMMITTED, metadata="x" * 100))])
    assert "Writing group g" in caplog.text


def test_groups_of_a_partition_that_is_offline_are_unknown_and_not_new(stored: Stored) -> None:
    names = [f"g{number}" for number in range(10)]
    for name in ("g", *names):
        stored.groups.write(name, [offset_entry(name, T0, COMMITTED)])
    gone = stored.groups.partition_for("g")
    elsewhere = next(name for name in names if stored.groups.partition_for(name) != gone)
    damaged(stored, "offline")
    store = stored.started()
    assert elsewhere in store.load()
    assert "g" not in stored.loaded()
    with pytest.raises(CoordinatorNotAvailableError, match="offline"):
        store.partition_for("g")
    with pytest.raises(NotCoordinatorError):
        store.check_known("g")
    store.check_known(elsewhere)
    assert store.partition_for(elsewhere) != gone
