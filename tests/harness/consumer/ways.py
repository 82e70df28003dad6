"""The ways between the states of a member, as tables: from where to where, and what leads there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from typing import Any, TypeAlias

Ways: TypeAlias = "Mapping[str, Mapping[str, str]]"
Taken: TypeAlias = "Counter[tuple[str, str]]"

_FORGETS = "leaves, is removed by the group, or fails"

CLASSIC: Ways = {
    "UNJOINED": {
        "UNJOINED": "leaves or fails though it is out already",
        "REVOKING": "lost its partitions, or has some of topics that it is not subscribed to any more",
        "JOINING": "sends JoinGroup, as the application polls",
    },
    "REVOKING": {
        "UNJOINED": _FORGETS,
        "REVOKING": "has more to give up after the first call of the listener",
        "JOINING": "the application has given everything up",
    },
    "JOINING": {
        "UNJOINED": "JoinGroup is refused, unanswered, or given up by leaving",
        "SYNCING": "JoinGroup is answered with a generation",
    },
    "SYNCING": {
        "UNJOINED": "SyncGroup is refused, unanswered, or given up by leaving",
        "ASSIGNING": "SyncGroup is answered with an assignment",
    },
    "ASSIGNING": {
        "UNJOINED": _FORGETS,
        "STABLE": "the application has taken the assignment",
    },
    "STABLE": {
        "UNJOINED": _FORGETS,
        "REVOKING": "the group rebalances, and it has something to give up before it joins",
        "JOINING": "the group rebalances, and it has nothing to give up",
    },
}
"""A member of a group whose leader assigns."""

_OUT = {
    "UNSUBSCRIBED": "leaves",
    "FENCED": "a heartbeat is refused: the group does not know the member",
    "STALE": "the application did not poll for max.poll.interval.ms",
    "FATAL": "a heartbeat is refused for good",
}
_AGAIN = {
    "UNSUBSCRIBED": "leaves, though it is out already",
    "JOINING": "what was lost is given up, and the application polls",
    "FATAL": "the coordinator cannot be found, for a reason that does not pass",
}
CONSUMER: Ways = {
    "UNSUBSCRIBED": _AGAIN,
    "JOINING": {"RECONCILING": "the first answer has an assignment", **_OUT},
    "RECONCILING": {
        "RECONCILING": "another assignment is wanted meanwhile",
        "ACKNOWLEDGING": "the application has taken it",
        **_OUT,
    },
    "ACKNOWLEDGING": {
        "RECONCILING": "the answer wants another assignment",
        "STABLE": "the heartbeat that says what it has was answered",
        **_OUT,
    },
    "STABLE": {"RECONCILING": "an answer has another assignment", **_OUT},
    "FENCED": _AGAIN,
    "STALE": _AGAIN,
    "FATAL": _AGAIN,
}
"""A member whose coordinator assigns (KIP-848)."""

_LEAVES = {
    "LEAVING": "leaves",
    "FENCED": "a heartbeat is refused: the group does not know the member",
    "FATAL": "a heartbeat is refused for good",
    "STALE": "the application did not poll for max.poll.interval.ms",
}
SHARE: Ways = {
    "UNJOINED": {"UNJOINED": "leaves, though it is out already", "JOINING": "the application polls"},
    "JOINING": {"STABLE": "the first heartbeat is answered", **_LEAVES},
    "STABLE": {"STABLE": "a heartbeat is answered", **_LEAVES},
    "LEAVING": {"UNJOINED": "the coordinator has heard of it, or is not known"},
    "FENCED": {"UNJOINED": "leaves, though it is out already", "JOINING": "at once"},
    "FATAL": {"UNJOINED": "leaves, though it is out already", "JOINING": "the application polls"},
    "STALE": {"UNJOINED": "leaves, though it is out already", "JOINING": "the application polls"},
}
"""A member of a share group (KIP-932)."""


def pairs(ways: Ways) -> set[tuple[str, str]]:
    """Return the ways of a table."""
    return {(state, following) for state, reasons in ways.items() for following in reasons}


@contextmanager
def watched(states: type[Enum]) -> Iterator[Taken]:
    """Count the ways that members take, or want to take, whoever hears of the error of those that there are not."""
    taken: Taken = Counter()
    kind: Any = states
    usual = kind.to

    def to(self: Enum, state: Enum) -> Enum:
        taken[self.name, state.name] += 1
        found: Enum = usual(self, state)
        return found

    kind.to = to
    try:
        yield taken
    finally:
        kind.to = usual
