"""MetadataSnapshot: brokers by id in one picture, and what of it stays under a newer one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from kclient.client.metadata_snapshot import (
    NO_LEADER,
    LeaderAndEpoch,
    MetadataSnapshot,
    PartitionMetadata,
)
from kclient.common.node import Node
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid

NODES = {i: Node(i, f"host-{i}", 9092) for i in range(3)}


def snapshot(
    partitions: dict[tuple[str, int], PartitionMetadata] | None = None,
    nodes: dict[int, Node] | None = None,
    ids: dict[str, Uuid] | None = None,
    **fields: Any,
) -> MetadataSnapshot:
    found = {TopicPartition(*tp): metadata for tp, metadata in (partitions or {}).items()}
    return MetadataSnapshot("cluster", NODES if nodes is None else nodes, found, ids or {}, **fields)


def led(*topics: str, leader: int = 0) -> dict[tuple[str, int], PartitionMetadata]:
    return {(topic, 0): PartitionMetadata(leader, leader_epoch=3) for topic in topics}


def topics_of(made: MetadataSnapshot) -> set[str]:
    return {tp.topic for tp in made.partitions}


def merged(
    older: MetadataSnapshot, newer: MetadataSnapshot, answered: Iterable[str], wanted: Iterable[str]
) -> MetadataSnapshot:
    return older.merged_under(newer, answered, frozenset(wanted).__contains__)


def test_a_replica_on_a_broker_without_an_address_is_still_told_of() -> None:
    made = snapshot({("t", 0): PartitionMetadata(1, 4, (1, 7), (1,), (7,))})
    info = made.cluster.partition(TopicPartition("t", 0))
    assert info is not None
    assert info.leader == NODES[1]
    assert info.leader_epoch == 4
    assert info.replicas == (NODES[1], Node(7, "", -1))
    assert info.in_sync_replicas == (NODES[1],)
    assert info.offline_replicas == (Node(7, "", -1),)


def test_a_leader_without_an_address_is_none_but_its_epoch_is_known() -> None:
    made = snapshot({("t", 0): PartitionMetadata(7, 4)})
    assert made.leader_and_epoch(TopicPartition("t", 0)) == LeaderAndEpoch(None, 4)
    assert made.cluster.leader_for(TopicPartition("t", 0)) is None


def test_an_unknown_partition_has_no_leader_and_no_epoch() -> None:
    assert snapshot(led("t")).leader_and_epoch(TopicPartition("t", 1)) is NO_LEADER


def test_bootstrap_servers_are_neither_leaders_nor_controllers() -> None:
    first = MetadataSnapshot.bootstrap([("a", 1), ("b", 2)])
    assert first.nodes == {-1: Node(-1, "a", 1), -2: Node(-2, "b", 2)}
    assert first.cluster.controller is None
    made = snapshot({("t", 0): PartitionMetadata(-1)}, nodes=dict(first.nodes))
    assert made.leader_and_epoch(TopicPartition("t", 0)).leader is None


def test_the_controller_is_the_broker_of_its_id_if_that_is_known() -> None:
    assert snapshot(controller_id=2).cluster.controller == NODES[2]
    assert snapshot(controller_id=9).cluster.controller is None


def test_what_was_not_answered_for_stays_if_it_is_wanted() -> None:
    ids = {topic: Uuid(bytes([i]) * 16) for i, topic in enumerate(("answered", "wanted", "unwanted"), 1)}
    older = snapshot(led(*ids), ids=ids, internal_topics=frozenset(ids))
    newer = snapshot(led("answered", leader=1))
    made = merged(older, newer, ["answered"], ["answered", "wanted"])
    assert topics_of(made) == {"answered", "wanted"}
    assert made.partitions[TopicPartition("answered", 0)].leader_id == 1
    assert made.topic_ids == {"wanted": ids["wanted"]}
    assert made.internal_topics == {"wanted"}


def test_a_topic_that_was_answered_for_without_partitions_is_gone() -> None:
    made = merged(snapshot(led("t")), snapshot(missing_topics=frozenset({"t"})), ["t"], ["t"])
    assert topics_of(made) == set()
    assert made.missing_topics == {"t"}
    assert made.cluster.topics == frozenset()


def test_a_partition_that_is_no_longer_in_the_answer_is_gone() -> None:
    older = snapshot({("t", i): PartitionMetadata(0) for i in range(3)})
    made = merged(older, snapshot(led("t")), ["t"], ["t"])
    assert set(made.partitions) == {TopicPartition("t", 0)}


@pytest.mark.parametrize("field", ["invalid_topics", "unauthorized_topics", "missing_topics"])
def test_an_error_of_a_topic_lasts_until_it_is_answered_for_again(field: str) -> None:
    older = snapshot(**{field: frozenset({"bad", "mended"})})
    newer = snapshot(led("mended"), **{field: frozenset({"new"})})
    made = merged(older, newer, ["mended", "new"], ["mended", "new"])
    assert getattr(made, field) == {"bad", "new"}


def test_brokers_cluster_and_controller_are_those_of_the_newer_picture() -> None:
    older = snapshot(led("t", leader=2), controller_id=2)
    newer = MetadataSnapshot("other", {0: NODES[0]}, {}, {}, controller_id=0)
    made = merged(older, newer, [], ["t"])
    assert made.nodes == {0: NODES[0]}
    assert made.cluster_id == made.cluster.cluster_id == "other"
    assert made.cluster.controller == NODES[0]
    assert made.leader_and_epoch(TopicPartition("t", 0)) == LeaderAndEpoch(None, 3)


def test_each_topic_is_asked_about_once_however_many_partitions_it_has() -> None:
    asked: list[str] = []

    def wanted(topic: str) -> bool:
        asked.append(topic)
        return True

    older = snapshot(
        {("t", i): PartitionMetadata(0) for i in range(50)},
        ids={"u": Uuid(b"u" * 16), "gone": Uuid(b"g" * 16)},
    )
    older.merged_under(snapshot(), ["gone"], wanted)
    assert sorted(asked) == ["t", "u"]
