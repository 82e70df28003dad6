"""Changes: word from any thread that the application, if it waits for something, should look again."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Changes:
    """Counts what the application may be waiting for, and calls who waits for the next of it. Thread-safe.

    Nothing waits here. A call that blocks has a lock released, and a coroutine would have its loop called.
    `interrupt` is called at every change: it ends what goes on without looking.
    """

    __slots__ = ("_interrupt", "_lock", "_waiting", "count")

    def __init__(self, interrupt: Callable[[], object]) -> None:
        self._interrupt = interrupt
        # Reentrant: a signal handler may call the consumer's wakeup() in a thread that is in here.
        self._lock = threading.RLock()
        self._waiting: Callable[[], object] | None = None
        self.count = 0
        """Read it before looking, and pass it to `call_at_next`."""

    def notify(self) -> None:
        """There is something to look at."""
        with self._lock:
            self.count += 1
            self._interrupt()  # after the count: who begins meanwhile looks at that
            waiting, self._waiting = self._waiting, None
            if waiting is not None:
                waiting()

    def call_at_next(self, seen: int, function: Callable[[], object]) -> bool:
        """Have `function` called once, at the next change, in place of what was to be called before.

        False if something has changed since the count was `seen`.
        """
        with self._lock:
            if self.count != seen:
                return False
            self._waiting = function
            return True
