"""RangeAssignor: even runs of partitions, and racks where they matter; test_assignors of golden has Java's shares."""

from __future__ import annotations

from kclient.common.cluster import Cluster
from kclient.common.node import Node
from kclient.common.topic_partition import PartitionInfo
from kclient.consumer.assignor import RangeAssignor, Subscription


def cluster(**topics: int | list[str]) -> Cluster:
    """Topics with so many partitions, or with the racks of the replicas of each, a letter a replica."""
    nodes: dict[str, Node] = {}
    infos = []
    for topic, given in topics.items():
        for partition, racks in enumerate([""] * given if isinstance(given, int) else given):
            on = tuple(nodes.setdefault(rack, Node(ord(rack), "h", 1, rack)) for rack in racks)
            infos.append(PartitionInfo(topic, partition, on[0] if on else None, on, on))
    return Cluster("id", nodes.values(), infos)


def shares(cluster: Cluster, **members: Subscription) -> dict[str, list[str]]:
    made = RangeAssignor().assign(cluster, members)
    return {member: [str(tp) for tp in assignment.partitions] for member, assignment in made.items()}


def on(*topics: str, rack: str | None = None) -> Subscription:
    return Subscription(topics, rack_id=rack)


def test_the_first_members_get_the_partitions_that_are_left_over() -> None:
    assert shares(cluster(t=5), b=on("t"), a=on("t"), c=on("t")) == {
        "a": ["t-0", "t-1"],
        "b": ["t-2", "t-3"],
        "c": ["t-4"],
    }


def test_every_member_has_a_share_though_it_may_be_empty() -> None:
    assert shares(cluster(t=1), a=on("t"), b=on("t"), c=on("unknown"), d=on()) == {
        "a": ["t-0"],
        "b": [],
        "c": [],
        "d": [],
    }
    assert shares(cluster()) == {}


def test_equal_numbers_of_partitions_stay_together_over_topics() -> None:
    found = shares(cluster(t=4, u=4), a=on("u", "t"), b=on("t", "u"))
    assert found == {"a": ["t-0", "t-1", "u-0", "u-1"], "b": ["t-2", "t-3", "u-2", "u-3"]}


def test_partitions_go_to_members_in_the_rack_of_a_replica() -> None:
    found = shares(cluster(t=["x", "y", "x", "y"]), a=on("t", rack="y"), b=on("t", rack="x"))
    assert found == {"a": ["t-1", "t-3"], "b": ["t-0", "t-2"]}


def test_a_near_member_gets_no_more_than_its_even_share() -> None:
    found = shares(cluster(t=["x", "x", "x", "x"]), a=on("t", rack="y"), b=on("t", rack="x"))
    assert sorted(map(len, found.values())) == [2, 2]


def test_racks_mean_nothing_where_every_replica_set_is_in_all_of_them() -> None:
    found = shares(cluster(t=["xy", "yx"]), a=on("t", rack="y"), b=on("t", rack="x"))
    assert found == {"a": ["t-0"], "b": ["t-1"]}
    far = shares(cluster(t=["x", "x"]), a=on("t", rack="z"), b=on("t", rack="x"))
    assert far == {"a": ["t-0"], "b": ["t-1"]}


def test_racks_of_which_no_broker_is_mean_nothing() -> None:
    found = shares(cluster(t=["x", "y"]), a=on("t", rack="z"), b=on("t", rack=None))
    assert found == {"a": ["t-0"], "b": ["t-1"]}


def test_topics_that_are_divided_alike_are_near_together_or_not_at_all() -> None:
    found = shares(cluster(t=["x", "y"], u=["x", "y"]), a=on("t", "u", rack="y"), b=on("t", "u", rack="x"))
    assert found == {"a": ["t-1", "u-1"], "b": ["t-0", "u-0"]}
    apart = shares(cluster(t=["x", "y"], u=["y", "x"]), a=on("t", "u", rack="y"), b=on("t", "u", rack="x"))
    assert apart == {"a": ["t-0", "u-0"], "b": ["t-1", "u-1"]}
