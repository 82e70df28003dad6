"""Requests that say only what has changed."""

from __future__ import annotations

import pytest

from kclient.common.uuid import Uuid
from kclient.consumer.internals.coordinator.consumer_heartbeat import (
    ConsumerHeartbeats,
    ConsumerMemberSettings,
)
from kclient.consumer.internals.coordinator.target_assignment import NO_ASSIGNMENT, LocalAssignment

T = frozenset({"t"})
HELD = LocalAssignment(0, {Uuid(b"t" * 16): frozenset({1, 0})})


@pytest.fixture
def heartbeats() -> ConsumerHeartbeats:
    settings = ConsumerMemberSettings(
        group_id="g", group_instance_id=None, rebalance_timeout_ms=100, rack="r", assignor="range"
    )
    return ConsumerHeartbeats(settings, "m")


def test_all_is_said_again_when_it_may_not_have_been_heard_but_the_rack(
    heartbeats: ConsumerHeartbeats,
) -> None:
    heartbeats.build(0, T, None, NO_ASSIGNMENT, joining=True)
    heartbeats.build(1, T, None, HELD, joining=False)
    heartbeats.forget()
    again = heartbeats.build(1, T, None, HELD, joining=False)
    assert (again.rebalance_timeout_ms, again.server_assignor, again.rack_id) == (100, "range", None)
    assert again.subscribed_topic_names == ["t"]
    assert [topic.partitions for topic in again.topic_partitions or ()] == [[0, 1]]


def test_an_equal_assignment_of_another_version_is_acknowledged(heartbeats: ConsumerHeartbeats) -> None:
    heartbeats.build(1, T, None, HELD, joining=False)
    assert heartbeats.build(1, T, None, HELD, joining=False).topic_partitions is None
    newer = LocalAssignment(1, HELD.partitions)
    assert heartbeats.build(1, T, None, newer, joining=False).topic_partitions is not None


def test_whoever_joins_has_nothing(heartbeats: ConsumerHeartbeats) -> None:
    assert heartbeats.build(0, T, None, HELD, joining=True).topic_partitions == []


def test_a_pattern_that_is_gone_is_taken_away_by_an_empty_one(heartbeats: ConsumerHeartbeats) -> None:
    heartbeats.build(0, frozenset(), "a.*", NO_ASSIGNMENT, joining=True)
    changed = heartbeats.build(1, T, None, NO_ASSIGNMENT, joining=False)
    assert (changed.subscribed_topic_regex, changed.subscribed_topic_names) == ("", ["t"])


def test_a_subscription_is_news_until_it_was_said(heartbeats: ConsumerHeartbeats) -> None:
    assert heartbeats.is_news(T, None)
    heartbeats.build(0, T, None, NO_ASSIGNMENT, joining=True)
    assert not heartbeats.is_news(T, None)
    assert heartbeats.is_news(frozenset(), "t")
