"""Rule for groups: a partition has at most one owner."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import attrs

from harness.checker.history import Anomaly, History, Place, Turn


@attrs.frozen(eq=False)
class Ownership:
    """One member had one partition from `start` to `end`, both by its own account."""

    group: str
    place: Place
    member: str
    start: Turn
    end: float
    lost: bool = False
    """The group had taken the partition away before the member knew."""


def ownerships(history: History) -> list[Ownership]:
    """Every ownership of every member of a group. What is still owned ends with the process, or never."""
    found: list[Ownership] = []
    since: dict[str, dict[Place, Turn]] = {}
    for turn in history.reading:
        group = history.client(turn.process).group
        if group is None or not isinstance(turn, Turn) or turn.kind == "sought":
            continue
        owned = since.setdefault(turn.process, {})
        for place in turn.places:
            if turn.kind == "assigned":
                owned[place] = turn
            elif place in owned:
                start, lost = owned.pop(place), turn.kind == "lost"
                found.append(Ownership(group, place, turn.process, start, turn.at, lost))
    for process, owned in since.items():
        group = history.client(process).group or ""
        end = history.ended.get(process, float("inf"))
        found += [Ownership(group, place, process, start, end) for place, start in owned.items()]
    return found


def check_owners(history: History) -> Iterator[Anomaly]:
    """Find partitions that two members of a group had at a time.

    - two owners: a member was given a partition before the one that had it gave it up, or was ended.

    One that was thrown out may learn it late: then it has lost the partition. And one that was stopped meanwhile may
    never learn it, if it leaves as soon as it goes on; or it may be told of what it was given before, and has lost.
    """
    owned = [each for each in ownerships(history) if not _told_late(history, each)]
    turns = sorted(owned, key=lambda each: (each.group, each.place, each.start.at))
    for _, of_place in itertools.groupby(turns, key=lambda each: (each.group, each.place)):
        for earlier, later in itertools.pairwise(of_place):
            if later.start.at < earlier.end and not earlier.lost and later.member != earlier.member:
                if any(
                    earlier.start.at <= at <= later.start.at for at in history.stopped.get(earlier.member, ())
                ):
                    continue
                gave_up = (
                    "never" if earlier.end == float("inf") else f"{earlier.end - later.start.at:.3f} s later"
                )
                what = f"{later.member} was given {later.place}, which {earlier.member} gave up {gave_up}"
                yield Anomaly("two owners", what, (earlier.start, later.start))


def _told_late(history: History, owned: Ownership) -> bool:
    """Return True if a member was stopped before it heard of what it was given, and had lost it by then."""
    stops = [at for at in history.stopped.get(owned.member, ()) if at <= owned.start.at]
    if not owned.lost or not stops:
        return False
    return not any(
        isinstance(turn, Turn) and turn.process == owned.member and stops[-1] < turn.at < owned.start.at
        for turn in history.reading
    )
