"""ConsumerMemberState: the states of a member whose coordinator assigns (KIP-848), and the ways between them."""

from __future__ import annotations

from enum import Enum

from kclient.errors import IllegalStateError


class ConsumerMemberState(Enum):
    """The state of the member in its group."""

    UNSUBSCRIBED = "unjoined"
    JOINING = "joining"
    RECONCILING = "reconciling"
    ACKNOWLEDGING = "acknowledging"
    STABLE = "stable"
    FENCED = "fenced, giving its partitions up for lost"
    STALE = "out of the group until the application polls"
    FATAL = "out of the group after an error"

    def to(self, state: ConsumerMemberState) -> ConsumerMemberState:
        """Return `state`, if there is a way from this one to it. Raises IllegalStateError."""
        if state not in _VALID_NEXT[self]:
            raise IllegalStateError(f"A member cannot go from {self.name} to {state.name}")
        return state


_OUT = {
    ConsumerMemberState.UNSUBSCRIBED,
    ConsumerMemberState.FENCED,
    ConsumerMemberState.STALE,
    ConsumerMemberState.FATAL,
}
_AGAIN = {ConsumerMemberState.UNSUBSCRIBED, ConsumerMemberState.JOINING, ConsumerMemberState.FATAL}

_VALID_NEXT = {
    ConsumerMemberState.UNSUBSCRIBED: _AGAIN,
    ConsumerMemberState.JOINING: _OUT | {ConsumerMemberState.RECONCILING},
    ConsumerMemberState.RECONCILING: _OUT
    | {ConsumerMemberState.RECONCILING, ConsumerMemberState.ACKNOWLEDGING},
    ConsumerMemberState.ACKNOWLEDGING: _OUT | {ConsumerMemberState.RECONCILING, ConsumerMemberState.STABLE},
    ConsumerMemberState.STABLE: _OUT | {ConsumerMemberState.RECONCILING},
    ConsumerMemberState.FENCED: _AGAIN,
    ConsumerMemberState.STALE: _AGAIN,
    ConsumerMemberState.FATAL: _AGAIN,
}

# Not sets: looking for what is an enum's costs a call of its own there.
WITH_HEARTBEAT = (
    ConsumerMemberState.STABLE,
    ConsumerMemberState.RECONCILING,
    ConsumerMemberState.ACKNOWLEDGING,
    ConsumerMemberState.JOINING,
)
"""The states in which the coordinator wants to hear from the member."""
WITH_PLACE = (
    ConsumerMemberState.STABLE,
    ConsumerMemberState.RECONCILING,
    ConsumerMemberState.ACKNOWLEDGING,
)
"""The states in which the member has partitions, or is about to."""
