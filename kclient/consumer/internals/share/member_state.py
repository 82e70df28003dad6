"""ShareMemberState: the states of a member of a share group, and the ways between them."""

from __future__ import annotations

from enum import Enum

from kclient.errors import IllegalStateError


class ShareMemberState(Enum):
    """The state of the member in its share group."""

    UNJOINED = "unjoined"
    JOINING = "joining"
    STABLE = "stable"
    LEAVING = "leaving"
    FENCED = "not known to the group any more"
    FATAL = "refused"
    STALE = "left, as poll() was not called in time"

    def to(self, state: ShareMemberState) -> ShareMemberState:
        """Return `state`, if there is a way from this one to it. Raises IllegalStateError."""
        if state not in VALID_NEXT[self]:
            raise IllegalStateError(f"A member of a share group cannot go from {self.name} to {state.name}")
        return state


_State = ShareMemberState

VALID_NEXT = {
    _State.UNJOINED: {_State.UNJOINED, _State.JOINING},
    _State.JOINING: {_State.STABLE, _State.LEAVING, _State.FENCED, _State.FATAL, _State.STALE},
    _State.STABLE: {_State.STABLE, _State.LEAVING, _State.FENCED, _State.FATAL, _State.STALE},
    _State.LEAVING: {_State.UNJOINED},
    _State.FENCED: {_State.UNJOINED, _State.JOINING},
    _State.FATAL: {_State.UNJOINED, _State.JOINING},
    _State.STALE: {_State.UNJOINED, _State.JOINING},
}
"""The ways between the states."""

IN_GROUP = (ShareMemberState.JOINING, ShareMemberState.STABLE)
"""The states in which the coordinator wants to hear from the member."""
