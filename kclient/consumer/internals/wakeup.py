"""wakeup(): ends, from any thread, whatever call the consumer waits in."""

from __future__ import annotations

import threading
from typing import Any

from kclient.consumer.internals.fetch_buffer import FetchBuffer
from kclient.errors import WakeupError
from kclient.utils.futures import CompletableFuture


class WakeupTrigger:
    """Remembers a wakeup until a call that waits has raised it, exactly once. Thread-safe."""

    __slots__ = ("_buffer", "_lock", "_waited_for", "pending")

    def __init__(self, buffer: FetchBuffer) -> None:
        self._buffer = buffer
        # Reentrant: a signal handler may call wakeup() in a thread that is in here.
        self._lock = threading.RLock()
        self.pending = False
        self._waited_for: CompletableFuture[Any] | None = None

    def wakeup(self) -> None:
        """End the call that waits, or the next one."""
        with self._lock:
            future, self._waited_for = self._waited_for, None
            if future is not None and future.fail(WakeupError()):
                return
            self.pending = True
        self._buffer.wakeup()

    def raise_if_pending(self) -> None:
        """Raise WakeupError if there was a wakeup; it counts as delivered then."""
        if self.pending:
            with self._lock:
                if self.pending:
                    self.pending = False
                    raise WakeupError

    def wait(self, future: CompletableFuture[Any], timeout_ms: int) -> Any:
        """The future's result; raises its error, WakeupError, or KafkaTimeoutError after `timeout_ms`."""
        with self._lock:
            self.raise_if_pending()
            self._waited_for = future
        try:
            return future.result(timeout_ms / 1000)
        finally:
            with self._lock:
                self._waited_for = None
