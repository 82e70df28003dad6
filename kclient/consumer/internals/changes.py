"""Changes: word from any thread that the application, if it waits for something, should look again."""

from __future__ import annotations

import threading
from collections.abc import Callable

import attrs

from kclient.utils.futures import CompletableFuture

_NOW: CompletableFuture[None] = CompletableFuture.completed(None)


@attrs.define(eq=False, repr=False)
class Changes:
    """Counts what the application may be waiting for, and has a future of the next of it. Thread-safe.

    `interrupt` is called at every change: it ends what goes on without looking.
    """

    _interrupt: Callable[[], object]
    # Reentrant: a signal handler may call the consumer's wakeup() in a thread that is in here.
    _lock: threading.RLock = attrs.field(factory=threading.RLock, init=False)
    _next: CompletableFuture[None] | None = attrs.field(default=None, init=False)
    count: int = attrs.field(default=0, init=False)
    """Read it before looking, and pass it to `next`."""

    def notify(self) -> None:
        """There is something to look at."""
        with self._lock:
            self.count += 1
            self._interrupt()  # after the count: who begins meanwhile looks at that
            future, self._next = self._next, None
        if future is not None:
            future.complete(None)

    def next(self, seen: int) -> CompletableFuture[None]:
        """A future of the next change; done, if something has changed since the count was `seen`.

        It takes the place of the one before, which nobody waits for any more: a consumer has one caller at a time, and
        one who looks again and again must not leave a callback behind each time.
        """
        with self._lock:
            if self.count != seen:
                return _NOW
            self._next = future = CompletableFuture[None]()
            return future
