"""Stopping a run: by an event of the application, or by SIGTERM and SIGINT."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

log = logging.getLogger(__name__)

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Stop:
    """The wish that a run ends when what it has in hand is done."""

    def __init__(self, event: threading.Event | None) -> None:
        self._event = event
        # Not an Event: a signal may interrupt this very thread inside the lock of one.
        self._signalled = self._told = False

    @property
    def wanted(self) -> bool:
        """True once the run is to end. For the thread of the run."""
        if self._signalled and not self._told:
            self._told = True
            log.info(
                "A signal has come: run() ends when what is in hand is done; another one ends it at once"
            )
        return self._signalled or (self._event is not None and self._event.is_set())

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Stop on SIGTERM and SIGINT for a `with` block of the main thread; the second one is a KeyboardInterrupt.

        On other threads, where Python calls no signal handlers, nothing happens.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        # None are handlers that Python did not install and could not put back.
        former = {number: handler for number in _SIGNALS if (handler := signal.getsignal(number)) is not None}
        try:
            for number in former:
                signal.signal(number, self._on_signal)
            yield
        finally:
            for number, handler in former.items():
                signal.signal(number, handler)

    def _on_signal(self, _number: int, _frame: object) -> None:
        if self._signalled:
            raise KeyboardInterrupt
        self._signalled = True
