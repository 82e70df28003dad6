"""The topics that are subscribed to, and calls that exclude each other."""

from __future__ import annotations

import re

import pytest

from kclient.common.topic_partition import TopicPartition
from kclient.consumer.internals.subscription_state import SubscriptionState
from kclient.errors import IllegalStateError

T0, U0 = TopicPartition("t", 0), TopicPartition("u", 0)


@pytest.fixture
def state() -> SubscriptionState:
    return SubscriptionState()


def test_topics_a_pattern_and_an_assignment_exclude_each_other_until_unsubscribed(
    state: SubscriptionState,
) -> None:
    ways = [
        lambda: state.subscribe(["t"]),
        lambda: state.subscribe_pattern(re.compile("t.*")),
        state.assign,
    ]
    for way in ways:
        assert state.has_nothing()
        way()
        assert not state.has_nothing()
        for other in ways:
            if other is not way:
                with pytest.raises(IllegalStateError, match="exclude each other"):
                    other()
        state.unsubscribe()
    assert state.pattern is None
    assert not state.subscription()


def test_a_pattern_is_the_topics_that_match_all_of_it(state: SubscriptionState) -> None:
    state.subscribe_pattern(re.compile("t"))
    assert state.awaits_match
    assert state.subscribe_from_pattern(["t"])
    assert not state.awaits_match
    assert not state.subscribe_from_pattern(["t"]), "it was so before"
    assert state.subscription() == {"t"}
    assert state.covers([T0])
    assert not state.covers([T0, U0])
    assert not state.matches("tt")
    state.unsubscribe()
    assert not state.subscribe_from_pattern(["t"]), "the metadata was on its way"


def test_metadata_is_needed_of_the_groups_topics_or_of_what_is_assigned(state: SubscriptionState) -> None:
    state.subscribe(["t"])
    assert state.group_subscribe(["u"])
    assert not state.group_subscribe(["u"])
    assert state.metadata_topics([]) == {"t", "u"}
    state.reset_group_subscription()
    assert state.metadata_topics([]) == {"t"}
    assert state.has_auto_assigned_partitions()
    state.unsubscribe()
    state.assign()
    assert state.metadata_topics([U0]) == {"u"}
    assert not state.has_auto_assigned_partitions()
    assert not state.subscription()
