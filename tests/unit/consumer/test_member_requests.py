"""The requests of a group member: what they say, and to which versions."""

from __future__ import annotations

import pytest

from kclient.common.topic_partition import TopicPartition
from kclient.consumer.assignor import RangeAssignor, RoundRobinAssignor
from kclient.consumer.internals.coordinator import group_protocol
from kclient.consumer.internals.coordinator.generation import Generation
from kclient.consumer.internals.coordinator.member_requests import MembershipSettings
from kclient.errors import KafkaError

BUILT_IN = (RangeAssignor(), RoundRobinAssignor())
MEMBER = Generation(7, "m-1", "range")
SETTINGS = MembershipSettings(
    group_id="g", group_instance_id="i", session_timeout_ms=1000, rebalance_timeout_ms=2000, rack="r"
)


def test_a_generation_is_one_only_once_the_group_gave_its_number() -> None:
    assert not Generation().is_valid
    assert Generation(0, "m-1").is_valid


def test_joining_says_the_same_subscription_for_every_assignor() -> None:
    request = SETTINGS.join(MEMBER, ["t", "u"], [TopicPartition("t", 1)], BUILT_IN, "new topics")
    assert (request.group_id, request.member_id, request.group_instance_id) == ("g", "m-1", "i")
    assert (request.session_timeout_ms, request.rebalance_timeout_ms) == (1000, 2000)
    assert [each.name for each in request.protocols] == ["range", "roundrobin"]
    (encoded,) = {each.metadata for each in request.protocols}
    subscription = group_protocol.decode_subscription(encoded)
    assert (list(subscription.topics), subscription.generation_id, subscription.rack_id) == (
        ["t", "u"],
        7,
        "r",
    )
    assert subscription.owned_partitions == (TopicPartition("t", 1),)


class Talkative(RangeAssignor):
    """Has something to say to the leader's."""

    NAME = "talkative"

    def subscription_user_data(self, topics: frozenset[str]) -> bytes | None:
        return ",".join(sorted(topics)).encode()


def test_each_assignor_has_its_own_user_data() -> None:
    request = SETTINGS.join(MEMBER, ["u", "t"], [], (RangeAssignor(), Talkative()), "")
    told = [group_protocol.decode_subscription(each.metadata).user_data for each in request.protocols]
    assert told == [None, b"t,u"]


class Mute(RangeAssignor):
    def subscription_user_data(self, topics: frozenset[str]) -> bytes | None:
        raise ValueError(f"nothing about {sorted(topics)}")


def test_an_assignor_that_fails_when_asked_for_user_data_is_named() -> None:
    with pytest.raises(KafkaError, match=r"'range' has no user data.*nothing about \['t'\]"):
        SETTINGS.join(MEMBER, ["t"], [], (Mute(),), "")


def test_a_share_for_each_member_comes_with_a_leaders_sync() -> None:
    request = SETTINGS.sync(MEMBER, {"m-1": b"1", "m-2": b"2"})
    assert (request.generation_id, request.member_id, request.protocol_name) == (7, "m-1", "range")
    assert {each.member_id: each.assignment for each in request.assignments} == {"m-1": b"1", "m-2": b"2"}
    assert SETTINGS.sync(MEMBER, {}).assignments == []


def test_a_heartbeat_names_the_member_and_its_generation() -> None:
    request = SETTINGS.heartbeat(MEMBER)
    assert (request.group_id, request.generation_id, request.member_id, request.group_instance_id) == (
        "g",
        7,
        "m-1",
        "i",
    )


@pytest.mark.parametrize("version", [0, 2, 3, 5])
def test_leaving_names_the_member_where_the_version_has_it(version: int) -> None:
    request = SETTINGS.leave(MEMBER, "done", version)
    if version < 3:
        assert (request.member_id, request.members) == ("m-1", [])
    else:
        assert [(each.member_id, each.reason) for each in request.members] == [("m-1", "done")]


def test_a_reason_is_as_long_as_the_coordinator_takes_it() -> None:
    reason = "because " * 100
    assert SETTINGS.join(MEMBER, ["t"], [], BUILT_IN, reason).reason == reason[:255]
    assert SETTINGS.leave(MEMBER, reason, 5).members[0].reason == reason[:255]
