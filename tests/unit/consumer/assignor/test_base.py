"""Parts that assignors share: the order of members, who is subscribed to which topic, what the contract leaves open."""

from __future__ import annotations

from collections.abc import Mapping

from kclient.common.cluster import Cluster
from kclient.common.offsets import ConsumerGroupMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.consumer.assignor.base import (
    Assignment,
    ConsumerPartitionAssignor,
    MemberInfo,
    RebalanceProtocol,
    Subscription,
    members_by_topic,
    partitions_of,
)


def test_static_members_come_first_by_their_instance_and_dynamic_ones_by_their_id() -> None:
    members = [MemberInfo("a", None), MemberInfo("z", "2"), MemberInfo("b", None), MemberInfo("y", "10")]
    ordered = sorted(members, key=lambda member: member.sort_key)
    assert [member.member_id for member in ordered] == ["y", "z", "a", "b"]


def test_an_empty_instance_id_is_one() -> None:
    assert MemberInfo("z", "").sort_key < MemberInfo("a", None).sort_key


def test_a_static_member_keeps_its_place_when_its_member_id_changes() -> None:
    assert MemberInfo("first", "i").sort_key == MemberInfo("second", "i").sort_key


def test_a_member_that_names_a_topic_twice_is_subscribed_once() -> None:
    found = members_by_topic({"m": Subscription(("t", "u", "t")), "n": Subscription(("t",))})
    assert {topic: [member.member_id for member in members] for topic, members in found.items()} == {
        "t": ["m", "n"],
        "u": ["m"],
    }


def test_an_empty_rack_is_none() -> None:
    found = members_by_topic({"m": Subscription(("t",), rack_id=""), "n": Subscription(("t",), rack_id="r")})
    assert [member.rack_id for member in found["t"]] == [None, "r"]


def test_members_without_topics_are_in_no_topic() -> None:
    assert members_by_topic({"m": Subscription(())}) == {}


def test_partitions_are_counted_from_0() -> None:
    assert partitions_of("t", 2) == [TopicPartition("t", 0), TopicPartition("t", 1)]
    assert partitions_of("t", 0) == []


class Plain(ConsumerPartitionAssignor):
    """Nothing but what it has to have."""

    NAME = "plain"

    def assign(self, cluster: Cluster, subscriptions: Mapping[str, Subscription]) -> dict[str, Assignment]:
        return {member_id: Assignment(()) for member_id in subscriptions}


def test_an_assignor_is_eager_and_has_nothing_to_tell_the_leader_unless_it_says_otherwise() -> None:
    plain = Plain()
    assert plain.supported_protocols == (RebalanceProtocol.EAGER,)
    assert plain.version == 0
    assert plain.subscription_user_data(frozenset({"t"})) is None
    plain.on_assignment(Assignment(()), ConsumerGroupMetadata("g", 1, "m"))
    assert plain.subscription_user_data(frozenset({"t"})) is None


def test_the_cooperative_protocol_is_preferred() -> None:
    assert max(RebalanceProtocol) is RebalanceProtocol.COOPERATIVE
    assert [protocol.value for protocol in RebalanceProtocol] == [0, 1]
