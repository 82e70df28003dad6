"""CooperativeStickyAssignor: partitions are given up before they are given away."""

from __future__ import annotations

import pytest

from harness.consumer.group_of_assignors import Group, cluster_of
from kclient.common.offsets import ConsumerGroupMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.consumer.assignor import (
    Assignment,
    CooperativeStickyAssignor,
    RebalanceProtocol,
    StickyAssignor,
    Subscription,
)


def told(generation: int) -> bytes | None:
    assignor = CooperativeStickyAssignor()
    assignor.on_assignment(Assignment(()), ConsumerGroupMetadata("g", generation, "m"))
    return assignor.subscription_user_data(frozenset({"t"}))


def owning(*partitions: int, generation: int = -1, user_data: bytes | None = None) -> Subscription:
    return Subscription(
        ("t",), user_data, tuple(TopicPartition("t", each) for each in partitions), generation_id=generation
    )


def shares(count: int, **members: Subscription) -> dict[str, list[int]]:
    made = CooperativeStickyAssignor().assign(cluster_of({"t": count}), members)
    return {member_id: sorted(tp.partition for tp in given.partitions) for member_id, given in made.items()}


def test_it_is_for_cooperative_groups_and_for_eager_ones() -> None:
    assert set(CooperativeStickyAssignor().supported_protocols) == set(RebalanceProtocol)
    assert StickyAssignor().supported_protocols == (RebalanceProtocol.EAGER,)


def test_its_user_data_is_the_generation_of_the_last_assignment() -> None:
    assert CooperativeStickyAssignor().subscription_user_data(frozenset()) == b"\xff\xff\xff\xff"
    assert told(5) == b"\0\0\0\5"


@pytest.mark.parametrize("topics", [["t"], ["t", "u"]], ids=["same topics", "other topics"])
def test_what_moves_is_held_back_until_its_owner_has_given_it_up(topics: list[str]) -> None:
    group, cluster = Group(CooperativeStickyAssignor), cluster_of({"t": 4})
    group.join("a", ["t"])
    assert len(group.rebalance(cluster)["a"]) == 4
    group.join("b", topics)
    assert {member: len(given) for member, given in group.rebalance(cluster).items()} == {"a": 2, "b": 0}
    assert {member: len(given) for member, given in group.rebalance(cluster).items()} == {"a": 2, "b": 2}


def test_what_nobody_owns_is_assigned_at_once() -> None:
    assert shares(4, a=owning(0, 1, generation=1), b=owning()) == {"a": [0, 1], "b": [2, 3]}


def test_a_partition_that_two_members_say_they_own_is_held_back_from_both() -> None:
    made = shares(4, a=owning(0, 1, generation=1), b=owning(0, 3, generation=1))
    assert sorted(made["a"] + made["b"]) == [1, 2, 3]


def test_the_generation_of_subscriptions_that_lack_it_is_in_the_user_data() -> None:
    made = shares(4, a=owning(0, 1, user_data=told(1)), b=owning(0, 3, user_data=told(2)))
    assert (0 in made["a"], 0 in made["b"]) == (False, True)


@pytest.mark.parametrize("garbage", [b"", b"\0\0\0"])
def test_user_data_that_cannot_be_read_is_of_no_generation(garbage: bytes) -> None:
    made = shares(4, a=owning(0, 1, user_data=garbage), b=owning(0, 3, user_data=told(0)))
    assert (0 in made["a"], 0 in made["b"]) == (False, True)
