"""A group whose members come, leave, are killed and stopped, by several clients in one."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from harness.checker.history import History
from harness.checker.log import HistoryLog
from harness.soak.churn import MemberProcess, Program, history_of, owners_now


class GroupChurn:
    """Up to so many members at a time; those that are gone are remembered for their histories.

    `programs` are the clients that new members are of in turns, with their settings. With `stop_s` members are also
    stopped (SIGSTOP) for as long.
    """

    def __init__(
        self,
        directory: Path,
        servers: str,
        topic: str,
        rng: random.Random,
        *,
        most: int = 5,
        programs: Sequence[tuple[Program, Mapping[str, object]]] = (("kclient", {}),),
        stop_s: float | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.members: list[MemberProcess] = []
        self.steps: dict[str, int] = {"join": 0, "leave": 0, "kill": 0, "stop": 0}
        self._slots: list[MemberProcess | None] = [None] * most
        self._directory = directory
        self._servers = servers
        self._topic = topic
        self._rng = rng
        self._programs = programs
        self._stop_s = stop_s
        self._sleep = sleep
        self._path = directory / "churn.jsonl"
        self.log = HistoryLog.at(self._path)
        """Ends of members, and what was committed."""

    @property
    def group(self) -> str:
        """The group's name."""
        return f"g-{self._topic}"

    def join(self, slot: int, program: Program | None = None) -> None:
        """Start a member of the client whose turn it is, or of this one.

        Of those of one client every other one commits by itself, the others let poll do it.
        """
        number = len(self.members)
        program = program or self._programs[number % len(self._programs)][0]
        settings = dict(self._programs)[program]
        earlier = len(self.names(program))
        member = MemberProcess(
            f"{program}-{number}",
            self._directory,
            self._servers,
            self._topic,
            self.group,
            self.log,
            commit="positions" if earlier % 2 else "auto",
            settings=settings,
            program=program,
        )
        self.members.append(member)
        self._slots[slot] = member
        self.steps["join"] += 1

    def step(self) -> None:
        """One member comes, or goes one way or the other, or is stopped; the group is never left empty."""
        slot = self._rng.randrange(len(self._slots))
        member = self._slots[slot]
        if member is None:
            self.join(slot)
        elif self._stop_s is not None and self._rng.random() < 0.25:
            member.pause()
            self._sleep(self._stop_s)
            member.resume()
            self.steps["stop"] += 1
        elif self._slots.count(None) < len(self._slots) - 1:
            self._slots[slot] = None
            if self._rng.random() < 0.5:
                member.kill()
                self.steps["kill"] += 1
            else:
                member.leave()
                self.steps["leave"] += 1

    def fill(self) -> None:
        """Start what is missing."""
        for slot, member in enumerate(self._slots):
            if member is None:
                self.join(slot)

    def names(self, program: Program) -> set[str]:
        """Return the names of all members of one client."""
        return {member.name for member in self.members if member.name.startswith(program)}

    def leave_to(self, program: Program) -> set[str]:
        """Have all others leave, one after another, and return the names of those that are left, at least one."""
        for slot, member in enumerate(self._slots):
            if member is not None and not member.name.startswith(program):
                self._slots[slot] = None
                member.leave()
        if not any(self._slots):
            self.join(0, program)
        return {member.name for member in self._slots if member is not None}

    def end(self, *, kill: bool) -> None:
        """End all that run."""
        for member in self._slots:
            if member is not None:
                (member.kill if kill else member.leave)()
        self._slots = [None] * len(self._slots)

    def history(self, *others: Path) -> History:
        """Everything that was written so far, and what is in other files."""
        return history_of(self.members, self._path, *others)

    def settled(self, partitions: int) -> bool:
        """Return True if each of so many partitions has one owner."""
        owners = owners_now(self.history())
        return len(owners) == partitions and all(len(names) == 1 for names in owners.values())
