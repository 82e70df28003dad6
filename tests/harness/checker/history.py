"""Operations of clients, as they saw them: sends, polls, commits, transactions, and partitions that come and go.

Times are seconds of CLOCK_MONOTONIC, which all processes of a machine share. That of an invocation was taken before the
operation began, that of a completion after it had ended, so the operation lies within them. A client does one thing
after another; the operations of one stand in its order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from typing import Literal, NamedTuple

import attrs

Outcome = Literal["ok", "fail", "unknown"]
"""`fail`: certainly without effect. `unknown`: it may have taken place, or still take place."""


class Place(NamedTuple):
    """A partition. The topic's id tells the logs of a topic apart that was deleted and created again."""

    topic: str
    partition: int
    topic_id: str = ""

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}" + (f" ({self.topic_id})" if self.topic_id else "")

    @property
    def home(self) -> Place:
        """The partition as producers name it, without the topic's id."""
        return self if not self.topic_id else Place(self.topic, self.partition)


@attrs.frozen
class Client:
    """A producer or a consumer. Its name, `process` in the operations, is never used for a second one."""

    name: str
    idempotent: bool = True
    """The producer writes no record twice and none out of order."""
    group: str | None = None
    read_committed: bool = False
    auto_commit: bool = False
    """The consumer commits by itself, which is not in the history."""

    @property
    def subscriber(self) -> str:
        """The group that reads a topic together, or this client alone."""
        return self.name if self.group is None else self.group


# Slots without equality, as there are millions of them.
@attrs.define(eq=False)
class Transaction:
    """A transaction of a producer.

    `ok` is a commit, `fail` an abort. One that is `unknown` and has no `commit_started` cannot have been committed.
    """

    process: str
    number: int
    started: float
    commit_started: float | None = None
    ended: float | None = None
    outcome: Outcome = "unknown"

    def __str__(self) -> str:
        how = {"ok": "committed", "fail": "aborted", "unknown": "outcome unknown"}[self.outcome]
        commit = "never" if self.commit_started is None else f"{self.commit_started:.6f}"
        return (
            f"transaction {self.number} of {self.process}: {how}, commit called {commit}{_until(self.ended)}"
        )


@attrs.define(eq=False)
class Send:
    """A record that a producer was given. Values are unique in a topic.

    The partition is None as long as only the producer knows it; the offset is None where it was not told.
    """

    process: str
    number: int
    started: float
    topic: str
    partition: int | None
    value: str
    transaction: Transaction | None = None
    ended: float | None = None
    outcome: Outcome = "unknown"
    offset: int | None = None
    error: str = ""
    told: int = 0
    """Times that the outcome was told."""

    @property
    def place(self) -> Place | None:
        """The partition, if it is known."""
        return None if self.partition is None else Place(self.topic, self.partition)

    def __str__(self) -> str:
        where = f"{self.topic}-{'?' if self.partition is None else self.partition}"
        end = {"ok": f"acknowledged @{self.offset}", "fail": f"failed: {self.error}"}.get(
            self.outcome, f"outcome unknown: {self.error}"
        )
        within = "" if self.transaction is None else f" in transaction {self.transaction.number}"
        return (
            f"{self.process} sent {self.value!r} to {where}{within} at {self.started:.6f}, {end}"
            f"{_until(self.ended)}"
        )


@attrs.define(eq=False)
class Poll:
    """Records that a consumer was handed, by partition, in their order: offset and value.

    It was written down before the consumer was called again. There is no time of invocation, as no rule needs it.
    """

    process: str
    at: float
    records: Mapping[Place, Sequence[tuple[int, str]]]


@attrs.define(eq=False)
class Turn:
    """Partitions that a consumer was given, gave up or lost, or whose position its application moved (`sought`)."""

    process: str
    at: float
    kind: Literal["assigned", "revoked", "lost", "sought"]
    places: Sequence[Place]

    def __str__(self) -> str:
        return f"{self.process}: {', '.join(map(str, self.places))} {self.kind} at {self.at:.6f}"


@attrs.define(eq=False)
class Commit:
    """Offsets that a consumer committed, or a producer within a transaction."""

    process: str
    number: int
    started: float
    group: str
    offsets: dict[Place, int]
    transaction: Transaction | None = None
    ended: float | None = None
    outcome: Outcome = "unknown"

    def __str__(self) -> str:
        within = "" if self.transaction is None else f" in transaction {self.transaction.number}"
        offsets = ", ".join(f"{place}@{offset}" for place, offset in self.offsets.items())
        return (
            f"{self.process} committed {offsets} for {self.group}{within} at {self.started:.6f}: {self.outcome}"
            f"{_until(self.ended)}"
        )


@attrs.define(eq=False)
class Observation:
    """Committed offsets of a group, as somebody who asked for them was told."""

    started: float
    ended: float
    group: str
    offsets: dict[Place, int]

    def __str__(self) -> str:
        offsets = ", ".join(f"{place}@{offset}" for place, offset in self.offsets.items())
        return f"{self.group} had committed {offsets} between {self.started:.6f} and {self.ended:.6f}"


@attrs.define(eq=False)
class Finish:
    """Claim that a subscriber has read these partitions from the beginning to what was the end before `at`."""

    subscriber: str
    at: float
    places: Sequence[Place]

    def __str__(self) -> str:
        places = ", ".join(map(str, self.places))
        return f"{self.subscriber} had read {places} to the end at {self.at:.6f}"


@attrs.define(eq=False)
class Read:
    """One record of a poll, as evidence."""

    process: str
    at: float
    place: Place
    offset: int
    value: str

    def __str__(self) -> str:
        return f"{self.process} read {self.value!r} at {self.place}@{self.offset} at {self.at:.6f}"


Evidence = Transaction | Send | Turn | Commit | Observation | Finish | Read


@attrs.frozen
class Anomaly:
    """Something that must not be, and the operations that prove it."""

    kind: str
    what: str
    evidence: tuple[Evidence, ...] = ()

    def __str__(self) -> str:
        return "".join([f"{self.kind}: {self.what}", *(f"\n    {each}" for each in self.evidence)])


@attrs.define
class History:
    """Everything that was written down. Of one client, each list is in its order."""

    clients: dict[str, Client] = attrs.Factory(dict)
    sends: list[Send] = attrs.Factory(list)
    reading: list[Poll | Turn] = attrs.Factory(list)
    """Polls and turns, in the order in which each consumer had them."""
    transactions: list[Transaction] = attrs.Factory(list)
    commits: list[Commit] = attrs.Factory(list)
    observations: list[Observation] = attrs.Factory(list)
    finishes: list[Finish] = attrs.Factory(list)
    closed: set[str] = attrs.Factory(set)
    """Clients that ended in good order: nothing of them is missing."""
    ended: dict[str, float] = attrs.Factory(dict)
    """Times from which a client was certainly not running any more."""
    stopped: dict[str, list[float]] = attrs.Factory(dict)
    """Times at which a client was stopped by a signal, to go on later."""

    noticed: list[Anomaly] = attrs.Factory(list)
    """Contradictions within a single operation."""

    def client(self, process: str) -> Client:
        """The client of this name; one that said nothing about itself has the usual settings."""
        return self.clients.get(process) or Client(process)

    def __len__(self) -> int:
        """The number of operations."""
        kinds: tuple[Sized, ...] = (
            self.sends,
            self.reading,
            self.transactions,
            self.commits,
            self.observations,
        )
        return sum(len(kind) for kind in kinds)


def _until(ended: float | None) -> str:
    return "" if ended is None else f" at {ended:.6f}"
