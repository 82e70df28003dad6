"""RecordCursor and RecordIterator: records given out one at a time, without a call of the consumer for each."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Self, final

from kclient._accel.shared import forks


def system_ms() -> int:
    return time.monotonic_ns() // 1_000_000


@final
class RecordCursor:
    """Gives out the records of a list one at a time, as long as nothing else is due.

    `index` says how far it is, `last_ms` when the last one was given out, by `clock` (None: the system's monotonic
    one, in ms). The thread that starts it gets the records; any thread may call `stop` and read the attributes.
    """

    __slots__ = ("_clock", "_forks", "_owner", "_records", "_until_ms", "index", "last_ms")

    def __init__(self, clock: Callable[[], int] | None = None) -> None:
        self._clock = clock or system_ms
        self._records: list[Any] = []
        self._until_ms = 0
        self._owner = 0
        self._forks = 0
        self.index = 0
        self.last_ms = 0

    def start(self, records: list[Any], index: int, until_ms: int) -> None:
        """Give out `records` from `index` on until a time; to this thread, in this process."""
        self.index = index
        self._until_ms = until_ms
        self._owner = threading.get_ident()
        self._forks = forks.generation
        self._records = records

    def stop(self) -> None:
        """Give out no more; `index` stays."""
        self._records = []

    def take(self) -> Any:
        """Return the next record, None if there is none or if the caller has to look at other things first."""
        records, index = self._records, self.index
        if index >= len(records) or self._owner != threading.get_ident() or self._forks != forks.generation:
            return None
        now_ms = self._clock()
        if now_ms >= self._until_ms:
            return None
        self.last_ms = now_ms
        self.index = index + 1  # last: between this and the caller nothing can be interrupted
        return records[index]


@final
class RecordIterator:
    """The records of `cursor`; where it has none, what `more()` returns, which may raise StopIteration."""

    __slots__ = ("_cursor", "_more")

    def __init__(self, cursor: RecordCursor, more: Callable[[], Any]) -> None:
        self._cursor = cursor
        self._more = more

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        record = self._cursor.take()
        return self._more() if record is None else record
