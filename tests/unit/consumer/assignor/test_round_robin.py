"""RoundRobinAssignor: partitions dealt out one by one; test_assignors of golden has Java's shares."""

from __future__ import annotations

from kclient.common.cluster import Cluster
from kclient.common.topic_partition import PartitionInfo
from kclient.consumer.assignor import RoundRobinAssignor, Subscription


def shares(topics: dict[str, int], **members: tuple[str, ...] | Subscription) -> dict[str, list[str]]:
    infos = [PartitionInfo(topic, i, None) for topic, count in topics.items() for i in range(count)]
    given = {
        member: Subscription(topics) if isinstance(topics, tuple) else topics
        for member, topics in members.items()
    }
    made = RoundRobinAssignor().assign(Cluster("id", [], infos), given)
    return {member: [str(tp) for tp in assignment.partitions] for member, assignment in made.items()}


def test_topics_go_on_where_the_one_before_ended() -> None:
    assert shares({"u": 2, "t": 3}, b=("t", "u"), a=("t", "u")) == {
        "a": ["t-0", "t-2", "u-1"],
        "b": ["t-1", "u-0"],
    }


def test_members_that_are_not_subscribed_are_passed_over() -> None:
    assert shares({"t": 3, "u": 2}, a=("t",), b=("t", "u"), c=("u",)) == {
        "a": ["t-0", "t-2"],
        "b": ["t-1", "u-0"],
        "c": ["u-1"],
    }
    assert shares({"t": 1, "u": 2}, a=("t",), b=("t",), c=("u",)) == {
        "a": ["t-0"],
        "b": [],
        "c": ["u-0", "u-1"],
    }


def test_every_member_has_a_share_though_it_may_be_empty() -> None:
    assert shares({"t": 1}, a=("t",), b=("t",), c=(), d=("unknown",)) == {
        "a": ["t-0"],
        "b": [],
        "c": [],
        "d": [],
    }
    assert shares({"t": 1}) == {}


def test_static_members_come_first() -> None:
    static = Subscription(("t",), group_instance_id="i")
    assert shares({"t": 3}, a=("t",), z=static) == {"z": ["t-0", "t-2"], "a": ["t-1"]}


def test_with_equal_subscriptions_nobody_has_more_than_one_more() -> None:
    for count in range(12):
        found = shares({"t": count, "u": 5}, a=("t", "u"), b=("u", "t"), c=("t", "u"))
        sizes = [len(share) for share in found.values()]
        assert max(sizes) - min(sizes) <= 1
        assert sum(sizes) == count + 5
