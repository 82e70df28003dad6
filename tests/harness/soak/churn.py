"""Members of a group that come, leave and are killed, and what their journals must say."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs

_MEMBER = Path(__file__).parent / "group_member.py"
_LEAVE_S = 45.0


@attrs.frozen
class Event:
    """A line of a journal."""

    at: float
    event: str
    content: Any


class MemberProcess:
    """A running `group_member.py`."""

    def __init__(
        self, name: str, directory: Path, servers: str, topic: str, group: str, *, auto_commit: bool
    ) -> None:
        self.name = name
        self.ended_at: float | None = None
        """The time at which it was surely no longer running."""
        self._journal = directory / f"{name}.jsonl"
        self._journal.touch()
        self._log = directory / f"{name}.log"
        arguments = [servers, topic, group, str(auto_commit).lower(), str(self._journal)]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(_MEMBER), *arguments], stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )

    def kill(self) -> None:
        """kill -9."""
        self._process.kill()
        self._process.wait(10)
        self.ended_at = time.monotonic()

    def leave(self) -> None:
        """Ask it to leave the group, and wait for that; raises AssertionError with its log if it does not end well."""
        self._process.terminate()
        try:
            code = self._process.wait(_LEAVE_S)
        except subprocess.TimeoutExpired:
            self.kill()
            code = -9
        self.ended_at = time.monotonic()
        # Before it could ask for the signal, that ends it the hard way.
        well = code == 0 or (code == -signal.SIGTERM and not self.events())
        assert well, f"member {self.name} ended with {code}:\n{self._log.read_text(errors='replace')[-4000:]}"

    def events(self) -> list[Event]:
        """The journal so far; a last line that is cut off was not written."""
        lines = self._journal.read_text(encoding="utf-8").split("\n")[:-1]
        return [Event(**json.loads(line)) for line in lines]


@attrs.frozen
class Ownership:
    """One member had one partition from `start` to `end`, both by its own account."""

    partition: int
    member: str
    start: float
    end: float
    lost: bool
    """The group had taken the partition away before the member knew."""


def ownerships(members: Sequence[MemberProcess]) -> list[Ownership]:
    """Every ownership of every member. What is still owned ends with the process, or never."""
    found: list[Ownership] = []
    for member in members:
        since: dict[int, float] = {}
        for event in member.events():
            if event.event == "assigned":
                since.update(dict.fromkeys(event.content, event.at))
            elif event.event in ("revoked", "lost"):
                lost = event.event == "lost"
                found += [
                    Ownership(partition, member.name, since.pop(partition), event.at, lost)
                    for partition in event.content
                    if partition in since
                ]
        end = float("inf") if member.ended_at is None else member.ended_at
        found += [Ownership(partition, member.name, start, end, False) for partition, start in since.items()]
    return found


def check_owners(owned: Sequence[Ownership]) -> list[str]:
    """At any time a partition has at most one owner; a member that was thrown out may learn it late."""
    problems: list[str] = []
    for partition in {each.partition for each in owned}:
        turns = sorted((each for each in owned if each.partition == partition), key=lambda each: each.start)
        for earlier, later in itertools.pairwise(turns):
            if later.start < earlier.end and not earlier.lost:
                problems.append(
                    f"two owners: {later.member} was given partition {partition} "
                    f"{earlier.end - later.start:.3f} s before {earlier.member} gave it up"
                )
    return problems


def owners_now(members: Sequence[MemberProcess]) -> dict[int, list[str]]:
    """Partition -> the living members that have it."""
    owners: dict[int, list[str]] = {}
    for each in ownerships(members):
        if each.end == float("inf"):
            owners.setdefault(each.partition, []).append(each.member)
    return owners


def handed_out(members: Sequence[MemberProcess]) -> dict[int, int]:
    """Partition -> the offset after the last record that any application was given."""
    ends: dict[int, int] = {}
    for partition, _, last, _ in _reads(members):
        ends[partition] = max(ends.get(partition, 0), last + 1)
    return ends


def seen(members: Sequence[MemberProcess]) -> set[tuple[int, int]]:
    """The places of all records that any application was given."""
    return {
        (partition, offset)
        for partition, first, last, _ in _reads(members)
        for offset in range(first, last + 1)
    }


def check_reads(member: MemberProcess) -> list[str]:
    """While a member has a partition, what it is handed follows what it was handed before."""
    problems: list[str] = []
    following: dict[int, int] = {}
    owned: set[int] = set()
    for event in member.events():
        if event.event == "assigned":
            owned.update(event.content)
        elif event.event in ("revoked", "lost"):
            for partition in event.content:
                owned.discard(partition)
                following.pop(partition, None)
        elif event.event == "read":
            for text, (first, last, count) in event.content.items():
                partition = int(text)
                expected = following.get(partition, first)
                where = f"{member.name} was handed {partition}@{first}..{last}"
                if partition not in owned:
                    problems.append(f"{where} without owning the partition")
                if first != expected or count != last - first + 1:
                    problems.append(f"poll skip: {where} ({count} records) after @{expected - 1}")
                following[partition] = last + 1
    return problems


def _reads(members: Sequence[MemberProcess]) -> Iterator[tuple[int, int, int, int]]:
    for member in members:
        for event in member.events():
            if event.event == "read":
                for partition, (first, last, count) in event.content.items():
                    yield int(partition), first, last, count
