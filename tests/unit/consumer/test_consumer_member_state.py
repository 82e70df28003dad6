"""The states of a member of the consumer protocol."""

from __future__ import annotations

import pytest

from kclient.consumer.internals.coordinator.consumer_member_state import WITH_HEARTBEAT, ConsumerMemberState
from kclient.errors import IllegalStateError

STATES = list(ConsumerMemberState)


@pytest.mark.parametrize("state", STATES)
def test_a_member_can_leave_from_any_state(state: ConsumerMemberState) -> None:
    assert state.to(ConsumerMemberState.UNSUBSCRIBED) is ConsumerMemberState.UNSUBSCRIBED


@pytest.mark.parametrize("state", STATES)
def test_any_error_can_end_a_membership(state: ConsumerMemberState) -> None:
    assert state.to(ConsumerMemberState.FATAL) is ConsumerMemberState.FATAL


@pytest.mark.parametrize("state", STATES)
def test_whoever_is_in_the_group_does_not_join_again_before_going_out_of_it(
    state: ConsumerMemberState,
) -> None:
    if state in WITH_HEARTBEAT:
        with pytest.raises(IllegalStateError, match=f"{state.name} to JOINING"):
            state.to(ConsumerMemberState.JOINING)
    else:
        assert state.to(ConsumerMemberState.JOINING) is ConsumerMemberState.JOINING


@pytest.mark.parametrize("state", STATES)
def test_only_what_was_reconciled_is_acknowledged(state: ConsumerMemberState) -> None:
    if state is ConsumerMemberState.RECONCILING:
        state.to(ConsumerMemberState.ACKNOWLEDGING)
    else:
        with pytest.raises(IllegalStateError):
            state.to(ConsumerMemberState.ACKNOWLEDGING)


@pytest.mark.parametrize("state", STATES)
def test_only_a_member_is_fenced_or_late(state: ConsumerMemberState) -> None:
    for out in (ConsumerMemberState.FENCED, ConsumerMemberState.STALE):
        if state in WITH_HEARTBEAT:
            assert state.to(out) is out
        else:
            with pytest.raises(IllegalStateError):
                state.to(out)
