"""Rules for the offsets that a group has committed: somebody committed them with effect, and they stay so."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate

import attrs

from harness.checker.history import Anomaly, Commit, History, Observation, Place, Transaction

Sources = dict[str, dict[Place, "Committed"]]
"""Commits by group and partition."""


def check_commits(history: History, sources: Sources) -> Iterator[Anomaly]:
    """Find what is wrong with committed offsets, wherever somebody asked for them.

    - aborted commit: by a commit that failed, or in a transaction that was aborted;
    - precommitted commit: in a transaction whose commit had not been called;
    - unknown commit: nobody committed that offset;
    - lost commit: an older offset after a newer one was acknowledged.

    All of it needs to know all commits, so it is for groups of which no member commits by itself.
    """
    for observation in history.observations:
        commits = sources.get(observation.group)
        for place, offset in observation.offsets.items():
            if commits is not None:
                yield from commits.get(place, Committed()).check(observation, place, offset)


def sources_of(history: History) -> Sources:
    """Sort the commits; those of groups in which a member commits by itself are left out."""
    automatic = {client.group for client in history.clients.values() if client.auto_commit}
    found: Sources = {}
    for commit in history.commits:
        if commit.group not in automatic:
            for place in commit.offsets:
                found.setdefault(commit.group, {}).setdefault(place, Committed()).add(commit, place)
    for places in found.values():
        for commits in places.values():
            commits.sort()
    return found


def effective(history: History, sources: Sources) -> dict[Transaction, Observation]:
    """Transactions that must have taken effect, as offsets were seen that nobody else committed."""
    found: dict[Transaction, Observation] = {}
    for observation in history.observations:
        for place, offset in observation.offsets.items():
            commits = sources.get(observation.group, {}).get(place)
            possible = [] if commits is None else commits.possible(offset, observation)
            if len(possible) == 1 and possible[0].transaction is not None:
                found.setdefault(possible[0].transaction, observation)
    return found


@attrs.define(eq=False)
class Committed:
    """All commits of a group for a partition."""

    _by_offset: dict[int, list[Commit]] = attrs.Factory(dict)
    _certain: list[tuple[float, Commit]] = attrs.Factory(list)
    """Those outside transactions that surely took place, by the time at which that was known."""
    _latest: list[Commit] = attrs.Factory(list)
    """Of those up to each one, that which began last."""

    def add(self, commit: Commit, place: Place) -> None:
        """Take a commit."""
        self._by_offset.setdefault(commit.offsets[place], []).append(commit)
        if commit.outcome == "ok" and commit.transaction is None and commit.ended is not None:
            self._certain.append((commit.ended, commit))

    def sort(self) -> None:
        """Get ready for questions."""
        self._certain.sort(key=lambda known: known[0])
        commits = (commit for _, commit in self._certain)
        self._latest = list(accumulate(commits, _later))

    def possible(self, offset: int, observation: Observation) -> list[Commit]:
        """Commits that may have put an offset where it was seen."""
        return [
            commit
            for commit in self._by_offset.get(offset, ())
            if commit.outcome != "fail"
            and commit.started <= observation.ended
            and (commit.transaction is None or _was_called(commit.transaction, observation))
        ]

    def check(self, observation: Observation, place: Place, offset: int) -> Iterator[Anomaly]:
        """Ask where an offset that was seen came from."""
        what = f"{observation.group} had committed {place}@{offset}"
        possible = self.possible(offset, observation)
        if not possible:
            commits = [each for each in self._by_offset.get(offset, ()) if each.started <= observation.ended]
            evidence = [
                part for commit in commits for part in (commit, commit.transaction) if part is not None
            ]
            if not commits:
                yield Anomaly("unknown commit", f"{what}, which nobody did", (observation,))
            elif any(_was_refused(commit) for commit in commits):
                yield Anomaly("aborted commit", f"{what}, which had no effect", (observation, *evidence))
            else:
                what += " before the commit of its transaction was called"
                yield Anomaly("precommitted commit", what, (observation, *evidence))
            return
        number = bisect_left(self._certain, observation.started, key=lambda known: known[0])
        if not number:
            return
        newest = self._latest[number - 1]
        if newest.offsets[place] != offset and all(_last_moment(each) < newest.started for each in possible):
            what += f" after @{newest.offsets[place]} was acknowledged"
            yield Anomaly("lost commit", what, (observation, newest, *possible))


def _later(one: Commit, other: Commit) -> Commit:
    return one if one.started > other.started else other


def _was_called(transaction: Transaction, observation: Observation) -> bool:
    called = transaction.commit_started
    return transaction.outcome != "fail" and called is not None and called <= observation.ended


def _was_refused(commit: Commit) -> bool:
    return commit.outcome == "fail" or (
        commit.transaction is not None and commit.transaction.outcome == "fail"
    )


def _last_moment(commit: Commit) -> float:
    """The last moment at which a commit can have taken place.

    Offsets of a transaction come after its end, at any time, for those who do not ask for stable ones.
    """
    if commit.outcome == "unknown" or commit.transaction is not None or commit.ended is None:
        return float("inf")
    return commit.ended
