"""Clients in processes of their own that come, leave and are killed, and what their histories say meanwhile."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Literal

from harness.checker.history import History, Place, Poll
from harness.checker.loader import load
from harness.checker.log import HistoryLog
from harness.checker.owners import ownerships
from harness.programs import environment

Program = Literal["kclient", "librdkafka", "java"]
PROGRAMS: Mapping[Program, Path] = {
    "kclient": Path(__file__).parent / "group_member.py",
    "librdkafka": Path(__file__).parent / "librdkafka_member.py",
    "java": Path(__file__).parent / "java_member.py",
}
"""A member of a group by another client each."""
_LEAVE_S = 45.0


class ClientProcess:
    """A running program with clients, which is ended by SIGTERM.

    It writes to the file `path` what its clients do, and what it prints goes to a file beside it. The ends of the
    clients are written to `history`.
    """

    def __init__(
        self,
        name: str,
        directory: Path,
        program: Path,
        arguments: Sequence[str],
        history: HistoryLog,
        *,
        leave_s: float = _LEAVE_S,
    ) -> None:
        self.name = name
        self.path = directory / f"{name}.jsonl"
        self.path.touch()
        self._history = history
        self._leave_s = leave_s
        self._log = directory / f"{name}.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(program), *arguments, name, str(self.path)],
                stdout=log,
                stderr=log,
                # Never written to: its end tells the program that nobody is there any more.
                stdin=subprocess.PIPE,
                env=environment(),
                # What it starts itself is killed and stopped along with it.
                start_new_session=True,
            )

    def kill(self) -> None:
        """kill -9."""
        self._signal(signal.SIGKILL)
        self._process.wait(10)
        self._note_ends()

    def pause(self) -> None:
        """SIGSTOP: connections stay, nothing happens."""
        for client in load(self.path).clients:
            self._history.stopped(client)
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self._signal(signal.SIGCONT)

    def leave(self) -> None:
        """Ask it to end, and wait for that; raises AssertionError with its log if it does not end well."""
        self._process.terminate()
        try:
            code = self._process.wait(self._leave_s)
        except subprocess.TimeoutExpired:
            self.kill()
            code = -9
        self._note_ends()
        # Before it could ask for the signal, that ends it the hard way.
        well = code == 0 or (code == -signal.SIGTERM and not load(self.path).clients)
        assert well, f"{self.name} ended with {code}:\n{self._log.read_text(errors='replace')[-4000:]}"

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def _note_ends(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        for client in load(self.path).clients:
            self._history.ended(client)


class MemberProcess(ClientProcess):
    """A running `group_member.py`, or another program with its arguments (`PROGRAMS`)."""

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
        settings: Mapping[str, object] | None = None,
        program: Program = "kclient",
    ) -> None:
        arguments = [servers, topic, group, commit, json.dumps(settings or {})]
        super().__init__(name, directory, PROGRAMS[program], arguments, history)


def history_of(members: Sequence[ClientProcess], *others: Path) -> History:
    """Everything that members and others wrote so far."""
    return load(*(member.path for member in members), *others)


def owners_now(history: History) -> dict[Place, list[str]]:
    """Partition -> the living members that have it."""
    owners: dict[Place, list[str]] = {}
    for each in ownerships(history):
        if each.end == float("inf"):
            owners.setdefault(each.place, []).append(each.member)
    return owners


def handed_out(history: History, names: Container[str] | None = None) -> dict[Place, int]:
    """Partition -> the offset after the last record that any application, or one of these, was given."""
    ends: dict[Place, int] = {}
    for poll in history.reading:
        if isinstance(poll, Poll) and (names is None or poll.process in names):
            for place, records in poll.records.items():
                ends[place] = max(ends.get(place, 0), records[-1][0] + 1)
    return ends


def not_committed(history: History, names: Container[str]) -> list[str]:
    """Tell what members with these names gave up in good order, without all that they had read being committed.

    Which is so if anybody who asked for the group's offsets later was told older ones.
    """
    polls: dict[tuple[str, Place], list[tuple[float, int]]] = {}
    for poll in history.reading:
        if isinstance(poll, Poll):
            for place, records in poll.records.items():
                polls.setdefault((poll.process, place), []).append((poll.at, records[-1][0] + 1))
    found = []
    for each in ownerships(history):
        gave_up = not each.lost and each.end != history.ended.get(each.member, float("inf"))
        if each.member not in names or not gave_up:
            continue
        own = polls.get((each.member, each.place), [])
        end = max((end for at, end in own if each.start.at <= at <= each.end), default=0)
        for seen in history.observations:
            if seen.group == each.group and seen.started > each.end and seen.offsets.get(each.place, 0) < end:
                found.append(
                    f"not committed: {each.member} gave up {each.place} at {each.end:.6f}, which it had read up to "
                    f"@{end}, but {seen}"
                )
                break
    return found
