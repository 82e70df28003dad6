"""A group's leader: when it can assign, what an assignor's failure becomes, and when its assignment is outdated."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from kclient.consumer.assignor.base import ConsumerPartitionAssignor, RebalanceProtocol, Subscription
from kclient.consumer.internals.coordinator import group_protocol
from kclient.consumer.internals.coordinator.group_leader import GroupLeader
from kclient.errors import InvalidTopicError, KafkaError
from kclient.protocol.messages.join_group import JoinGroupResponseMember
from kclient.utils.log_context import LogContext


def member(member_id: str, *topics: str) -> JoinGroupResponseMember:
    encoded = group_protocol.encode_subscription(Subscription(topics))
    return JoinGroupResponseMember(member_id=member_id, metadata=encoded)


class Failing(ConsumerPartitionAssignor):
    name = "failing"

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def assign(self, *_: Any) -> Any:
        raise self.error


def leader(
    rig: Any, assignors: Any = None, protocol: RebalanceProtocol = RebalanceProtocol.EAGER
) -> GroupLeader:
    """Lead beside a consumer that is subscribed to t and knows it."""
    rig.join()
    rig.rounds(5)
    if assignors is None:
        assignors = rig.core.membership._assignors
    return GroupLeader(assignors, protocol, rig.core.subscription, rig.core.metadata, LogContext("test"))


def shares(assigned: dict[str, bytes]) -> dict[str, set[str]]:
    return {
        name: {str(tp) for tp in group_protocol.decode_assignment(share).partitions}
        for name, share in assigned.items()
    }


def test_topics_that_are_known_are_assigned_at_once(rig: Any) -> None:
    leading = leader(rig)
    leading.begin("range", [member("a", "t"), member("b", "t")], rig.time.monotonic_ms() + 1000)
    assert leading.assigning
    assert leading.wait_ms(rig.time.monotonic_ms()) == 0
    assert shares(leading.assign()) == {"a": {"t-0"}, "b": {"t-1"}}
    assert not leading.assigning


def test_topics_of_other_members_are_asked_for_first(rig: Any) -> None:
    leading = leader(rig)
    rig.metadata_held = True
    now_ms = rig.time.monotonic_ms()
    leading.begin("range", [member("a", "t"), member("b", "u")], now_ms + 1000)
    assert leading.wait_ms(now_ms) == 1000
    assert leading.wait_ms(now_ms + 2000) == 0, "at the deadline it goes without them"
    rig.metadata_held = False
    rig.rounds(5)
    assert leading.wait_ms(now_ms) == 0
    assert shares(leading.assign()) == {"a": {"t-0", "t-1"}, "b": {"u-0", "u-1"}}


def test_a_member_that_leads_no_more_assigns_nothing(rig: Any) -> None:
    leading = leader(rig)
    leading.begin("range", [member("a", "t")], rig.time.monotonic_ms() + 1000)
    leading.forget()
    assert not leading.assigning
    assert not leading.is_outdated(rig.core.metadata.fetch())


@pytest.mark.parametrize("error", [InvalidTopicError("no such thing"), LookupError("no such thing")])
def test_an_assignor_that_fails_is_a_kafka_error(
    rig: Any, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    leading = leader(rig, {"failing": Failing(error)})
    leading.begin("failing", [member("a", "t")], rig.time.monotonic_ms() + 1000)
    with caplog.at_level(logging.CRITICAL), pytest.raises(KafkaError, match="no such thing") as raised:
        leading.assign()
    assert raised.value is error or raised.value.__cause__ is error
    assert not leading.assigning


def test_partitions_that_are_added_make_an_assignment_outdated_once(rig: Any) -> None:
    leading = leader(rig)
    leading.keep([member("a", "t")])
    assert not leading.is_outdated(rig.core.metadata.fetch())
    rig.topics["t"] = 3
    rig.core.metadata.request_update()
    rig.rounds(20)
    assert leading.is_outdated(rig.core.metadata.fetch())
    assert not leading.is_outdated(rig.core.metadata.fetch())
