"""TopicPartition, Node, Uuid, Cluster, offsets."""

from __future__ import annotations

import pickle

import pytest

from kclient.common.cluster import Cluster, TopicDescriptions
from kclient.common.node import Node
from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import PartitionInfo, TopicPartition
from kclient.common.uuid import Uuid


def test_value_types_are_equal_by_value_hashable_and_survive_pickling() -> None:
    for value in (
        TopicPartition("t", 1),
        Node(1, "h", 9092, "r"),
        Uuid(bytes(range(16))),
        OffsetAndMetadata(5, "note", 2),
    ):
        copy = pickle.loads(pickle.dumps(value))
        assert copy == value
        assert hash(copy) == hash(value)


def test_topic_partitions_sort_by_topic_then_number() -> None:
    assert sorted([TopicPartition("b", 0), TopicPartition("a", 10), TopicPartition("a", 2)]) == [
        TopicPartition("a", 2),
        TopicPartition("a", 10),
        TopicPartition("b", 0),
    ]
    assert str(TopicPartition("a", 2)) == f"{TopicPartition('a', 2)}" == "a-2"


def test_a_topic_partition_can_be_unpacked_and_has_the_hash_of_its_tuple() -> None:
    topic, number = TopicPartition("a", 2)
    assert (topic, number) == ("a", 2)
    assert {TopicPartition("a", 2): 1}["a", 2] == 1
    assert repr(TopicPartition("a", 2)) == "TopicPartition(topic='a', partition=2)"


def test_uuid_reads_what_it_writes_and_refuses_other_lengths() -> None:
    made = Uuid.random()
    assert Uuid.from_base64(str(made)) == made
    assert len(str(made)) == 22
    assert str(Uuid.ZERO) == "A" * 22
    with pytest.raises(ValueError, match="22 characters"):
        Uuid.from_base64("short")
    with pytest.raises(ValueError, match="16 bytes"):
        Uuid(b"x")


def test_a_negative_offset_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="offset"):
        OffsetAndMetadata(-1)


def test_a_cluster_knows_leaders_and_which_partitions_have_one() -> None:
    node = Node(1, "h", 9092)
    cluster = Cluster(
        "id",
        [node],
        [PartitionInfo("t", 1, None), PartitionInfo("t", 0, node)],
        topic_ids={"t": Uuid(b"\1" * 16)},
    )
    assert cluster.leader_for(TopicPartition("t", 0)) == node
    assert cluster.leader_for(TopicPartition("t", 1)) is None
    assert [info.partition for info in cluster.partitions_for_topic("t")] == [0, 1]
    assert [info.partition for info in cluster.available_partitions_for_topic("t")] == [0]
    assert cluster.partition_count("t") == 2
    assert cluster.partition_count("other") is None
    assert cluster.topic_name(Uuid(b"\1" * 16)) == "t"
    assert cluster.topics == {"t"}


def test_topics_are_described_only_when_somebody_asks_for_them() -> None:
    described: list[str] = []

    def describe(topic: str) -> list[PartitionInfo]:
        described.append(topic)
        return [PartitionInfo(topic, number, None) for number in (4, 0, 2)]

    cluster = Cluster("c", [], TopicDescriptions({"a", "b"}, describe))

    assert cluster.topics == {"a", "b"}
    assert cluster.partitions_for_topic("nobody's") == ()
    assert described == []
    assert [info.partition for info in cluster.partitions_for_topic("a")] == [0, 2, 4]
    assert cluster.partition_count("a") == 3
    assert described == ["a"]


@pytest.mark.parametrize(
    ("number", "known"), [(0, True), (1, False), (2, True), (3, False), (4, True), (5, False)]
)
def test_a_partition_is_found_by_its_number_where_others_are_missing(number: int, known: bool) -> None:
    cluster = Cluster("c", [], [PartitionInfo("t", each, None) for each in (0, 2, 4)])

    found = cluster.partition(TopicPartition("t", number))

    assert (found is not None and found.partition == number) is known
    assert cluster.partition(TopicPartition("t", -1)) is None
