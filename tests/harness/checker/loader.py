"""From the lines of a history to its operations."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from harness.checker.history import (
    Anomaly,
    Client,
    Commit,
    Finish,
    History,
    Observation,
    Place,
    Poll,
    Send,
    Transaction,
    Turn,
)


class HistoryError(ValueError):
    """A history that nobody can have written: lines are missing from its middle, or names were used twice."""


def load(*paths: Path) -> History:
    """Read files that belong together. Raises HistoryError, with file and line."""
    loader = Loader()
    for path in paths:
        with path.open("rb") as file:
            loader.read(file, str(path))
    return loader.end()


def load_lines(lines: Iterable[bytes]) -> History:
    """Read one history. Raises HistoryError, with the line's number."""
    loader = Loader()
    loader.read(lines, "line")
    return loader.end()


class Loader:
    """Builds a history line by line. A line that was cut off is left out, one for each process that was killed."""

    def __init__(self) -> None:
        self.history = History()
        self._sends: dict[tuple[str, int], Send] = {}
        self._commits: dict[tuple[str, int], Commit] = {}
        self._transactions: dict[tuple[str, int], Transaction] = {}
        self._places: dict[tuple[Any, ...], Place] = {}
        # Equal strings of millions of lines as one.
        self._names: dict[str, str] = {}
        self._torn: list[str] = []
        self._readers: dict[str, Callable[..., None]] = {
            "opened": self._opened,
            "closed": lambda process, _: self.history.closed.add(process),
            "ended": self._ended,
            "stopped": self._stopped,
            "send": self._send,
            "acked": self._acked,
            "failed": self._failed,
            "begun": self._begun,
            "ending": self._ending,
            "finished": self._finished,
            "polled": self._polled,
            **{kind: self._turn(kind) for kind in ("assigned", "revoked", "lost", "sought")},
            "commit": self._commit,
            "committed": self._committed,
            "observed": self._observed,
            "at end": self._at_end,
        }

    def read(self, lines: Iterable[bytes], source: str) -> None:
        """Add lines; `source` names them in errors."""
        for number, line in enumerate(lines, 1):
            if line.isspace() or not line:
                continue
            try:
                event, process, at, *content = json.loads(line)
            except ValueError:
                self._torn.append(f"{source}:{number}")
                continue
            try:
                self._readers[event](self._names.setdefault(process, process), at, *content)
            except (KeyError, TypeError, ValueError) as error:
                raise HistoryError(f"{source}:{number}: {line!r}: {error!r}") from error

    def end(self) -> History:
        """Return what was read."""
        killed = self.history.clients.keys() - self.history.closed
        if len(self._torn) > len(killed):
            raise HistoryError(
                f"{', '.join(self._torn)} cannot be read, and {len(killed)} clients did not end well"
            )
        return self.history

    def _opened(self, process: str, _at: float, about: dict[str, Any]) -> None:
        if process in self.history.clients:
            raise ValueError(f"a second client is called {process}")
        self.history.clients[process] = Client(process, **about)

    def _ended(self, process: str, at: float) -> None:
        self.history.ended.setdefault(process, at)

    def _stopped(self, process: str, at: float) -> None:
        self.history.stopped.setdefault(process, []).append(at)

    def _send(
        self,
        process: str,
        at: float,
        number: int,
        topic: str,
        partition: int | None,
        value: str,
        transaction: int | None,
    ) -> None:
        within = None if transaction is None else self._transactions[process, transaction]
        topic = self._names.setdefault(topic, topic)
        send = Send(process, number, at, topic, partition, value, within)
        self._sends[process, number] = send
        self.history.sends.append(send)

    def _acked(self, process: str, at: float, number: int, partition: int, offset: int) -> None:
        send = self._sends[process, number]
        send.told += 1
        send.ended, send.outcome = at, "ok"
        send.offset = None if offset < 0 else offset
        if send.partition is None:
            send.partition = partition
        elif send.partition != partition:
            what = f"a record of partition {send.partition} was acknowledged in {partition}"
            self.history.noticed.append(Anomaly("inconsistent offset", what, (send,)))

    def _failed(self, process: str, at: float, number: int, error: str, outcome: Any) -> None:
        send = self._sends[process, number]
        send.told += 1
        send.ended, send.outcome, send.error = at, outcome, error

    def _begun(self, process: str, at: float, number: int) -> None:
        transaction = Transaction(process, number, at)
        self._transactions[process, number] = transaction
        self.history.transactions.append(transaction)

    def _ending(self, process: str, at: float, number: int, commit: bool) -> None:
        transaction = self._transactions[process, number]
        if commit and transaction.commit_started is None:
            transaction.commit_started = at

    def _finished(self, process: str, at: float, number: int, outcome: Any) -> None:
        transaction = self._transactions[process, number]
        transaction.ended, transaction.outcome = at, outcome

    def _polled(self, process: str, at: float, chunks: list[list[Any]]) -> None:
        records = {
            self._place(chunk): [(offset, value) for offset, value in batch] for *chunk, batch in chunks
        }
        self.history.reading.append(Poll(process, at, records))

    def _turn(self, kind: Any) -> Callable[..., None]:
        def read(process: str, at: float, places: list[list[Any]]) -> None:
            self.history.reading.append(Turn(process, at, kind, [self._place(each) for each in places]))

        return read

    def _commit(
        self,
        process: str,
        at: float,
        number: int,
        group: str,
        offsets: list[list[Any]],
        transaction: int | None,
    ) -> None:
        within = None if transaction is None else self._transactions[process, transaction]
        commit = Commit(process, number, at, group, self._offsets(offsets), within)
        self._commits[process, number] = commit
        self.history.commits.append(commit)

    def _committed(self, process: str, at: float, number: int, outcome: Any) -> None:
        commit = self._commits[process, number]
        commit.ended, commit.outcome = at, outcome

    def _observed(self, group: str, at: float, started: float, offsets: list[list[Any]]) -> None:
        self.history.observations.append(Observation(started, at, group, self._offsets(offsets)))

    def _at_end(self, subscriber: str, at: float, places: list[list[Any]]) -> None:
        self.history.finishes.append(Finish(subscriber, at, [self._place(each) for each in places]))

    def _offsets(self, offsets: list[list[Any]]) -> dict[Place, int]:
        return {self._place(place): offset for *place, offset in offsets}

    def _place(self, parts: list[Any]) -> Place:
        key = tuple(parts)
        found = self._places.get(key)
        if found is None:
            topic, partition, topic_id = parts
            found = self._places[key] = Place(topic, partition, topic_id)
        return found
