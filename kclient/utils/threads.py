"""Threads that say how they died, and closing once."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

log = logging.getLogger(__name__)


class KafkaThread(threading.Thread):
    """A daemon thread with a name whose uncaught error is logged and handed to `on_death`.

    Daemon, because a client that was never closed must not keep the interpreter alive; clients flush at exit on
    their own terms.
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


class IdempotentCloser:
    """Runs a close exactly once, whoever asks and how often. Thread-safe."""

    __slots__ = ("_closed", "_lock")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._closed = False

    @property
    def closed(self) -> bool:
        """True once `close` was called."""
        return self._closed

    def close(self, on_close: Callable[[], None] | None = None) -> bool:
        """Mark as closed and run `on_close` if this is the first call; returns whether it was."""
        with self._lock:
            if self._closed:
                return False
            self._closed = True
        if on_close is not None:
            on_close()
        return True
