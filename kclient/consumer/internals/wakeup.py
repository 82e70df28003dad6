"""wakeup(): ends, from any thread, whatever call the consumer waits in."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import attrs

from kclient.errors import WakeupError
from kclient.utils.futures import CompletableFuture


@attrs.define(eq=False, repr=False)
class WakeupTrigger:
    """Remembers a wakeup until a call that waits has raised it, exactly once. Thread-safe.

    `wakeup` may be called by a signal handler, which can interrupt the very code that holds a lock. So it takes none:
    it leaves a note and has the I/O thread (`on_io_thread` runs a function there) end the wait.
    """

    _notify: Callable[[], None]
    _on_io_thread: Callable[[Callable[[], None]], None]
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)
    pending: bool = attrs.field(default=False, init=False)
    closing: bool = attrs.field(default=False, init=False)
    """Set when the consumer closes, which no wakeup ends."""
    _waited_for: CompletableFuture[Any] | None = attrs.field(default=None, init=False)

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
