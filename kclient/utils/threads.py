"""Threads that say how they died, and closing once."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable

from kclient._accel import forks

log = logging.getLogger(__name__)

_LOOK_AGAIN_S = 1.0


class KafkaThread(threading.Thread):
    """A daemon thread with a name whose uncaught error is logged and handed to `on_death`.

    Daemon, because a client that was never closed must not keep the interpreter alive; clients flush at exit on
    their own terms.

    It keeps its own account of whether it runs: before Python 3.13 a Ctrl-C that ends `Thread.join` makes the thread
    pass for dead, and whoever joins it again would not wait any more.
    """

    def __init__(
        self,
        name: str,
        target: Callable[[], None],
        on_death: Callable[[BaseException], None] | None = None,
    ) -> None:
        super().__init__(name=name, daemon=True)
        self._body = target
        self._on_death = on_death
        self._generation = forks.generation
        self._ended = False
        self._running = threading.Lock()
        self._running.acquire()

    def is_alive(self) -> bool:
        """Return True if it was started, in this process, and has not ended; nor has the interpreter."""
        if self.ident is None or self._ended or sys.is_finalizing():
            return False
        return self._generation == forks.generation

    def join(self, timeout: float | None = None) -> None:
        """Wait for the end, `timeout` seconds at most. May be interrupted and called again."""
        if sys.is_finalizing():
            return  # daemons are not run any more
        if threading.current_thread() is not self:
            deadline = None if timeout is None else time.monotonic() + timeout
            while self.is_alive():
                left = _LOOK_AGAIN_S if deadline is None else deadline - time.monotonic()
                if left <= 0:
                    return
                # In pieces, because a Ctrl-C between the next two calls leaves the lock held for those who wait, too.
                if self._running.acquire(timeout=min(left, _LOOK_AGAIN_S)):
                    self._running.release()
        super().join(None if timeout is None else min(timeout, _LOOK_AGAIN_S))

    def run(self) -> None:
        try:
            self._body()
        except BaseException as error:
            log.exception("Thread %s died", self.name)
            if self._on_death is not None:
                self._on_death(error)
        finally:
            # The target closes over its client; a finished thread object must not keep that alive.
            del self._body, self._on_death
            self._ended = True
            self._running.release()
