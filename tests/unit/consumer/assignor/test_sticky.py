"""StickyAssignor: what it takes from user data, and racks; test_assignors of golden has Java's shares."""

from __future__ import annotations

import pytest

from harness.consumer.group_of_assignors import Group, cluster_of
from kclient.common.offsets import ConsumerGroupMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.consumer.assignor import Assignment, StickyAssignor, Subscription


def told(generation: int, *partitions: int, topic: str = "t") -> bytes:
    """The user data of a member that was given these."""
    assignor = StickyAssignor()
    given = Assignment(tuple(TopicPartition(topic, partition) for partition in partitions))
    assignor.on_assignment(given, ConsumerGroupMetadata("g", generation, "m"))
    made = assignor.subscription_user_data(frozenset({topic}))
    assert made is not None
    return made


def shares(count: int, **members: Subscription) -> dict[str, list[int]]:
    made = StickyAssignor().assign(cluster_of({"t": count}), members)
    return {member_id: sorted(tp.partition for tp in given.partitions) for member_id, given in made.items()}


def having(user_data: bytes | None, *topics: str) -> Subscription:
    return Subscription(topics or ("t",), user_data)


def test_a_member_that_was_given_nothing_yet_has_no_user_data() -> None:
    assert StickyAssignor().subscription_user_data(frozenset({"t"})) is None


def test_an_assignment_of_nothing_is_told_as_well() -> None:
    assert told(3) == bytes.fromhex("00000000 00000003")


def test_members_keep_what_they_had() -> None:
    assert shares(4, a=having(told(1, 1, 3)), b=having(told(1, 0, 2))) == {"a": [1, 3], "b": [0, 2]}


def test_user_data_of_old_clients_has_no_generation() -> None:
    assert shares(4, a=having(told(1, 1, 3)[:-4]), b=having(told(1, 0, 2)[:-4])) == {"a": [1, 3], "b": [0, 2]}


@pytest.mark.parametrize(
    "garbage",
    [b"", b"\0", b"\xff" * 8, b"\x7f\xff\xff\xff", told(1, 1, 3)[:-5], b"\0\0\0\x01\xff\xff\0\0\0\0"],
)
def test_user_data_that_cannot_be_read_claims_nothing(garbage: bytes) -> None:
    assert shares(4, a=having(garbage), b=having(None)) == shares(4, a=having(None), b=having(None))


def test_partitions_that_do_not_exist_are_nobodys() -> None:
    claims = having(told(1, 0, 7, -1, 2**31 - 1))
    assert shares(2, a=claims, b=having(None)) == {"a": [0], "b": [1]}
    assert shares(2, a=having(told(1, 0, topic="gone")), b=having(None)) == {"a": [0], "b": [1]}


def test_a_claim_of_a_later_generation_wins() -> None:
    expected = {"a": [1, 2], "b": [0, 3]}
    assert shares(4, a=having(told(1, 0, 1, 2)), b=having(told(2, 0, 3))) == expected
    assert shares(4, b=having(told(2, 0, 3)), a=having(told(1, 0, 1, 2))) == expected


def test_claims_of_one_generation_that_do_not_agree_are_not_believed() -> None:
    made = shares(4, a=having(told(1, 0, 1)), b=having(told(1, 0, 3)))
    assert sorted(made["a"] + made["b"]) == [0, 1, 2, 3]
    assert (1 in made["a"], 3 in made["b"]) == (True, True)


def test_a_member_that_missed_a_rebalance_is_preferred_for_what_it_had_before() -> None:
    rest = {"a": having(told(2, 0, 1, 2, 3)), "b": having(None, "t", "u")}
    assert shares(4, **rest, c=having(None)) == {"a": [2, 3], "b": [0], "c": [1]}
    assert shares(4, **rest, c=having(told(1, 0))) == {"a": [2, 3], "b": [1], "c": [0]}


def test_what_a_member_had_before_is_not_given_to_it_without_its_subscription() -> None:
    made = shares(4, a=having(told(2, 0, 1, 2, 3)), b=having(told(1, 0), "u"), c=having(None))
    assert made == {"a": [2, 3], "b": [], "c": [0, 1]}


def test_a_member_whose_subscription_is_empty_gets_nothing() -> None:
    assert shares(2, a=Subscription(()), b=having(None)) == {"a": [], "b": [0, 1]}
    assert StickyAssignor().assign(cluster_of({"t": 2}), {"a": Subscription(())})["a"] == Assignment(())


def test_a_group_without_members_gets_no_shares() -> None:
    assert StickyAssignor().assign(cluster_of({"t": 2}), {}) == {}


@pytest.mark.parametrize("other", [("t",), ("t", "u")], ids=["same topics", "other topics"])
def test_partitions_go_to_members_in_the_rack_of_a_replica(other: tuple[str, ...]) -> None:
    group, cluster = Group(StickyAssignor), cluster_of({"t": ["b", "a", "b", "a"]})
    group.join("1", ["t"], "a")
    group.join("2", other, "b")
    for _ in range(2):
        made = group.rebalance(cluster)
        assert {member: [tp.partition for tp in given] for member, given in made.items()} == {
            "1": [1, 3],
            "2": [0, 2],
        }


def test_evenness_comes_before_racks() -> None:
    group = Group(StickyAssignor)
    group.join("1", ["t"], "a")
    group.join("2", ["t"], "b")
    made = group.rebalance(cluster_of({"t": ["a", "a", "a", "a", "a", "b"]}))
    assert {member: len(given) for member, given in made.items()} == {"1": 3, "2": 3}
    assert TopicPartition("t", 5) in made["2"]
