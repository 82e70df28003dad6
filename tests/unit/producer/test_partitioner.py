from __future__ import annotations

from collections import Counter

import pytest

from kclient.common.cluster import Cluster
from kclient.common.node import Node
from kclient.common.topic_partition import PartitionInfo
from kclient.errors import ConfigError
from kclient.producer.partitioner import DefaultPartitioner, RoundRobinPartitioner, make_partitioner

NODE = Node(0, "h", 1)


def cluster(leaders: list[bool]) -> Cluster:
    return Cluster("c", [NODE], [PartitionInfo("t", i, NODE if up else None) for i, up in enumerate(leaders)])


def test_round_robin_takes_each_partition_in_turn_and_leaves_out_those_without_leader() -> None:
    partitioner = RoundRobinPartitioner()
    where = cluster([True, False, True])
    counts = Counter(partitioner.partition("t", None, b"same", None, None, where) for _ in range(10))
    assert counts == {0: 5, 2: 5}


def test_the_default_leaves_records_without_key_to_the_producer() -> None:
    partitioner = DefaultPartitioner()
    where = cluster([True] * 10)
    assert partitioner.partition("t", None, None, None, None, where) is None
    assert partitioner.partition("t", "k", b"", None, None, where) == 1


@pytest.mark.parametrize(
    "value",
    [
        None,
        "default",
        DefaultPartitioner,
        DefaultPartitioner(),
        "org.apache.kafka.clients.producer.UniformStickyPartitioner",
    ],
)
def test_the_built_in_rule_has_several_names(value: object) -> None:
    assert make_partitioner(value) is None


@pytest.mark.parametrize(
    "value",
    [
        "org.apache.kafka.clients.producer.RoundRobinPartitioner",
        "round_robin",
        RoundRobinPartitioner,
        RoundRobinPartitioner(),
    ],
)
def test_round_robin_may_be_a_name_a_class_or_an_object(value: object) -> None:
    assert isinstance(make_partitioner(value), RoundRobinPartitioner)


def test_what_is_no_partitioner_is_refused() -> None:
    for value in ("com.example.Mine", object()):
        with pytest.raises(ConfigError, match=r"partitioner\.class"):
            make_partitioner(value)
