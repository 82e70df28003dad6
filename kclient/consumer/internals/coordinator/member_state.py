"""MemberState: the states of a member of a classic group, and the ways between them."""

from __future__ import annotations

from enum import Enum

from kclient.errors import IllegalStateError


class MemberState(Enum):
    """The state of the member in its group."""

    UNJOINED = "unjoined"
    REVOKING = "waiting for the application to give its partitions up"
    JOINING = "joining"
    SYNCING = "syncing"
    ASSIGNING = "waiting for the application to take its partitions"
    STABLE = "stable"

    def to(self, state: MemberState) -> MemberState:
        """Return `state`, if there is a way from this one to it. Raises IllegalStateError."""
        if state not in _VALID_NEXT[self]:
            raise IllegalStateError(f"A member cannot go from {self.name} to {state.name}")
        return state


_VALID_NEXT = {
    MemberState.UNJOINED: {MemberState.UNJOINED, MemberState.REVOKING, MemberState.JOINING},
    MemberState.REVOKING: {MemberState.UNJOINED, MemberState.REVOKING, MemberState.JOINING},
    MemberState.JOINING: {MemberState.UNJOINED, MemberState.SYNCING},
    MemberState.SYNCING: {MemberState.UNJOINED, MemberState.ASSIGNING},
    MemberState.ASSIGNING: {MemberState.UNJOINED, MemberState.STABLE},
    MemberState.STABLE: {MemberState.UNJOINED, MemberState.REVOKING, MemberState.JOINING},
}

# Not a set: looking for what is an enum's costs a call of its own there.
WITH_HEARTBEAT = (MemberState.STABLE, MemberState.REVOKING, MemberState.SYNCING, MemberState.ASSIGNING)
"""The states in which the coordinator wants to hear from the member."""
