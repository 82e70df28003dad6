"""History as a file: one JSON array a line, appended by as many processes as there are."""

from __future__ import annotations

import errno
import json
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.checker.history import Outcome, Place

Records = Mapping[Place, Sequence[tuple[int, bytes | None]]]


def text(value: bytes | None) -> str:
    """The value of a record as it stands in a history: every byte a character."""
    return "(null)" if value is None else value.decode("latin-1")


class HistoryLog:
    """Writer of a history. Safe for any number of threads, and of processes with the same file.

    A line is one write of the operating system and survives a kill of the process from there on. It begins with the
    line break, so that what a kill tore is a line of its own. Clients write through `producer` and `consumer`.
    """

    def __init__(
        self, append: Callable[[bytes], object], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._append = append
        self._clock = clock
        self._lock = threading.Lock()

    @classmethod
    def at(cls, path: Path) -> HistoryLog:
        """Append to the file at `path`, which is created if need be. Raises OSError, as every line may."""
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)

        def append(line: bytes) -> None:
            if os.write(file, line) != len(line):
                raise OSError(errno.ENOSPC, f"a line of {len(line)} bytes was not written whole", str(path))

        log = cls(append)
        # Not at exit: threads may still write.
        weakref.finalize(log, os.close, file).atexit = False
        return log

    def write(self, event: str, process: str, *content: object, at: float | None = None) -> None:
        """Add a line. The time is that of now, or `at`."""
        with self._lock:
            line = [event, process, self._clock() if at is None else at, *content]
            self._append(b"\n" + json.dumps(line, separators=(",", ":")).encode())

    def now(self) -> float:
        """The time of what is to be written later."""
        return self._clock()

    def producer(self, name: str, *, idempotent: bool = True) -> ProducerLog:
        """Log of a new producer; `name` must be new."""
        self.write("opened", name, {"idempotent": idempotent})
        return ProducerLog(self, name)

    def consumer(
        self, name: str, *, group: str | None = None, read_committed: bool = False, auto_commit: bool = False
    ) -> ConsumerLog:
        """Log of a new consumer; `name` must be new."""
        about = {"group": group, "read_committed": read_committed, "auto_commit": auto_commit}
        self.write("opened", name, about)
        return ConsumerLog(self, name)

    def observed(self, group: str, started: float, offsets: Mapping[Place, int]) -> None:
        """Note the committed offsets of a group, asked for at `started` and known now."""
        self.write("observed", group, started, _offsets(offsets))

    def at_end(self, subscriber: str, places: Iterable[Place], at: float | None = None) -> None:
        """Note that a group, or a consumer without one, has read everything that was there `at` that time, or now."""
        self.write("at end", subscriber, [list(place) for place in places], at=at)

    def ended(self, process: str) -> None:
        """Note that a client is certainly not running any more."""
        self.write("ended", process)

    def stopped(self, process: str) -> None:
        """Note that a client is about to be stopped by a signal."""
        self.write("stopped", process)


class ClientLog:
    """The operations of one client."""

    def __init__(self, log: HistoryLog, name: str) -> None:
        self.name = name
        self._log = log
        self._numbers = 0
        self._lock = threading.Lock()

    def closed(self) -> None:
        """The client ended in good order, after its last operation had its outcome."""
        self._write("closed")

    def commit(
        self,
        group: str,
        offsets: Mapping[Place, int],
        transaction: int | None = None,
        at: float | None = None,
    ) -> int:
        """Offsets are about to be committed, now or `at` that time; the number of this commit."""
        number = self._number()
        self._log.write("commit", self.name, number, group, _offsets(offsets), transaction, at=at)
        return number

    def committed(self, number: int, outcome: Outcome = "ok") -> None:
        """A commit ended."""
        self._write("committed", number, outcome)

    def _number(self) -> int:
        with self._lock:
            self._numbers += 1
            return self._numbers

    def _write(self, event: str, *content: object) -> None:
        self._log.write(event, self.name, *content)


class ProducerLog(ClientLog):
    """The operations of a producer, or of one of several threads that share it, as only those of one have an order.

    Records that are acknowledged before they are safe (acks=0, acks=1) have an unknown outcome.
    """

    def send(
        self, topic: str, value: bytes, partition: int | None = None, transaction: int | None = None
    ) -> int:
        """A record is about to be sent; its number."""
        number = self._number()
        self._write("send", number, topic, partition, text(value), transaction)
        return number

    def acked(self, number: int, partition: int, offset: int) -> None:
        """A record was acknowledged; an offset of -1 is one that is not known."""
        self._write("acked", number, partition, offset)

    def failed(self, number: int, error: object, outcome: Outcome) -> None:
        """A record failed: it certainly was not written (`fail`), or nobody knows (`unknown`)."""
        self._write("failed", number, str(error), outcome)

    def begun(self) -> int:
        """A transaction began; its number."""
        number = self._number()
        self._write("begun", number)
        return number

    def ending(self, transaction: int, *, commit: bool) -> None:
        """A transaction is about to be committed or aborted."""
        self._write("ending", transaction, commit)

    def finished(self, transaction: int, outcome: Outcome) -> None:
        """A transaction was committed (`ok`), or aborted (`fail`), or nobody knows."""
        self._write("finished", transaction, outcome)


class ConsumerLog(ClientLog):
    """The operations of a consumer."""

    def assigned(self, places: Iterable[Place]) -> None:
        """Partitions came to those that the consumer has."""
        self._turn("assigned", places)

    def revoked(self, places: Iterable[Place]) -> None:
        """The consumer gave partitions up."""
        self._turn("revoked", places)

    def lost(self, places: Iterable[Place]) -> None:
        """The group had taken partitions away before the consumer knew."""
        self._turn("lost", places)

    def sought(self, places: Iterable[Place]) -> None:
        """The application moved positions."""
        self._turn("sought", places)

    def polled(self, records: Records, at: float | None = None) -> None:
        """Records were handed out, now or `at` that time. To be called before the consumer is called again."""
        chunks: list[list[Any]] = [
            [*place, [(offset, text(value)) for offset, value in batch]] for place, batch in records.items()
        ]
        self._log.write("polled", self.name, chunks, at=at)

    def _turn(self, kind: str, places: Iterable[Place]) -> None:
        self._write(kind, [list(place) for place in places])


def _offsets(offsets: Mapping[Place, int]) -> list[list[object]]:
    return [[*place, offset] for place, offset in offsets.items()]
