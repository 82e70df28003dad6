"""wakeup(): ends, from any thread, whatever call the consumer waits in."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from kclient.errors import WakeupError
from kclient.utils.futures import CompletableFuture


class WakeupTrigger:
    """Remembers a wakeup until a call that waits has raised it, exactly once. Thread-safe.

    `wakeup` may be called by a signal handler, which can interrupt the very code that holds a lock. So it takes none:
    it leaves a note and has the I/O thread (`on_io_thread` runs a function there) end the wait.
    """

    __slots__ = ("_lock", "_notify", "_on_io_thread", "_waited_for", "closing", "pending")

    def __init__(
        self, notify: Callable[[], None], on_io_thread: Callable[[Callable[[], None]], None]
    ) -> None:
        self._notify = notify
        self._on_io_thread = on_io_thread
        self._lock = threading.Lock()
        self.pending = False
        self.closing = False
        """Set when the consumer closes, which no wakeup ends."""
        self._waited_for: CompletableFuture[Any] | None = None

    def wakeup(self) -> None:
        """End the call that waits, or the next one."""
        self.pending = True
        self._on_io_thread(self._deliver)

    def _deliver(self) -> None:
        with self._lock:
            future = self._waited_for
            pending = self.pending and not self.closing
            if pending and future is not None and future.fail(WakeupError()):
                self.pending = False
        self._notify()

    def raise_if_pending(self) -> None:
        """Raise WakeupError if there was a wakeup; it counts as delivered then."""
        if self.pending:
            with self._lock:
                self._raise()

    def begin_wait(self, future: CompletableFuture[Any]) -> None:
        """Fail `future`, which is about to be waited for, with the next wakeup; raises WakeupError if there was one."""
        with self._lock:
            self._raise()
            self._waited_for = future

    def end_wait(self) -> None:
        """The future is waited for no more."""
        with self._lock:
            self._waited_for = None

    def _raise(self) -> None:
        if self.pending and not self.closing:
            self.pending = False
            raise WakeupError
