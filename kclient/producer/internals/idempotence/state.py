"""The states of a producer id."""

from __future__ import annotations

from enum import Enum, auto


class State(Enum):
    """The state of the producer's id."""

    UNINITIALIZED = auto()
    INITIALIZING = auto()
    READY = auto()
    FATAL_ERROR = auto()


VALID_TRANSITIONS: dict[State, frozenset[State]] = {
    # To READY: the coordinator of transactions has given the id.
    State.UNINITIALIZED: frozenset({State.INITIALIZING, State.READY, State.FATAL_ERROR}),
    # Back to UNINITIALIZED: the request failed in passing and is sent again.
    State.INITIALIZING: frozenset({State.UNINITIALIZED, State.READY, State.FATAL_ERROR}),
    # To UNINITIALIZED: the epochs of the id are used up and a new id is needed.
    State.READY: frozenset({State.UNINITIALIZED, State.FATAL_ERROR}),
    State.FATAL_ERROR: frozenset(),
}
