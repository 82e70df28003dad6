"""Members of a group that come, leave and are killed, and what their histories say while they go on."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from harness.checker.history import History, Place, Poll
from harness.checker.loader import load
from harness.checker.log import HistoryLog
from harness.checker.owners import ownerships
from harness.programs import environment

_MEMBER = Path(__file__).parent / "group_member.py"
_LEAVE_S = 45.0


class MemberProcess:
    """A running `group_member.py`. Its end is written to `history`, what it does to a file of its own."""

    def __init__(
        self,
        name: str,
        directory: Path,
        servers: str,
        topic: str,
        group: str,
        history: HistoryLog,
        *,
        commit: Literal["auto", "positions", "offsets"],
    ) -> None:
        self.name = name
        self.path = directory / f"{name}.jsonl"
        self.path.touch()
        self._history = history
        self._log = directory / f"{name}.log"
        arguments = [servers, topic, group, commit, name, str(self.path)]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(_MEMBER), *arguments],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=environment(),
            )

    def kill(self) -> None:
        """kill -9."""
        self._process.kill()
        self._process.wait(10)
        self._history.ended(self.name)

    def leave(self) -> None:
        """Ask it to leave the group, and wait for that; raises AssertionError with its log if it does not end well."""
        self._process.terminate()
        try:
            code = self._process.wait(_LEAVE_S)
        except subprocess.TimeoutExpired:
            self.kill()
            code = -9
        self._history.ended(self.name)
        # Before it could ask for the signal, that ends it the hard way.
        well = code == 0 or (code == -signal.SIGTERM and not load(self.path).clients)
        assert well, f"member {self.name} ended with {code}:\n{self._log.read_text(errors='replace')[-4000:]}"


def history_of(members: Sequence[MemberProcess], *others: Path) -> History:
    """Everything that members and others wrote so far."""
    return load(*(member.path for member in members), *others)


def owners_now(history: History) -> dict[Place, list[str]]:
    """Partition -> the living members that have it."""
    owners: dict[Place, list[str]] = {}
    for each in ownerships(history):
        if each.end == float("inf"):
            owners.setdefault(each.place, []).append(each.member)
    return owners


def handed_out(history: History) -> dict[Place, int]:
    """Partition -> the offset after the last record that any application was given."""
    ends: dict[Place, int] = {}
    for poll in history.reading:
        if isinstance(poll, Poll):
            for place, records in poll.records.items():
                ends[place] = max(ends.get(place, 0), records[-1][0] + 1)
    return ends
