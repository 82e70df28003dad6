"""The states of a member: the ways between them, and where heartbeats are sent."""

from __future__ import annotations

import itertools

import pytest

from kclient.consumer.internals.coordinator.member_state import WITH_HEARTBEAT, MemberState
from kclient.errors import IllegalStateError

ROUND = [
    MemberState.UNJOINED,
    MemberState.JOINING,
    MemberState.SYNCING,
    MemberState.ASSIGNING,
    MemberState.STABLE,
    MemberState.REVOKING,
    MemberState.JOINING,
]


def test_a_member_may_go_the_whole_round_of_a_rebalance() -> None:
    for state, following in itertools.pairwise(ROUND):
        assert state.to(following) is following


@pytest.mark.parametrize("state", MemberState)
def test_from_everywhere_it_may_fall_out_of_the_group(state: MemberState) -> None:
    assert state.to(MemberState.UNJOINED) is MemberState.UNJOINED


@pytest.mark.parametrize(
    ("state", "following"),
    [
        (MemberState.UNJOINED, MemberState.STABLE),
        (MemberState.JOINING, MemberState.ASSIGNING),
        (MemberState.JOINING, MemberState.REVOKING),
        (MemberState.SYNCING, MemberState.STABLE),
        (MemberState.ASSIGNING, MemberState.JOINING),
        (MemberState.STABLE, MemberState.ASSIGNING),
    ],
)
def test_no_step_of_a_rebalance_is_left_out(state: MemberState, following: MemberState) -> None:
    with pytest.raises(IllegalStateError, match=f"cannot go from {state.name} to {following.name}"):
        state.to(following)


def test_the_coordinator_hears_of_a_member_that_is_in_a_generation() -> None:
    assert set(MemberState) - set(WITH_HEARTBEAT) == {MemberState.UNJOINED, MemberState.JOINING}
