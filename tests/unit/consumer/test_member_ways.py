"""The ways between a member's states are those of the tables, no more and no less."""

from __future__ import annotations

from enum import Enum
from typing import Any

import pytest

from harness.consumer.ways import CLASSIC, CONSUMER, SHARE, Ways, pairs
from kclient.consumer.internals.coordinator.consumer_member_state import ConsumerMemberState
from kclient.consumer.internals.coordinator.member_state import MemberState
from kclient.consumer.internals.share.member_state import ShareMemberState
from kclient.errors import IllegalStateError


@pytest.mark.parametrize(
    ("states", "ways"),
    [(MemberState, CLASSIC), (ConsumerMemberState, CONSUMER), (ShareMemberState, SHARE)],
    ids=["classic", "consumer", "share"],
)
def test_a_member_can_go_the_ways_of_its_table_and_no_other(states: type[Enum], ways: Ways) -> None:
    assert {
        (state.name, following.name) for state in states for following in states if goes(state, following)
    } == (pairs(ways))


def goes(state: Any, following: Enum) -> bool:
    """Return True if there is a way; there is an error that names it if there is none."""
    try:
        found = state.to(following)
    except IllegalStateError as error:
        if f"from {state.name} to {following.name}" not in str(error):
            raise
        return False
    return found is following
