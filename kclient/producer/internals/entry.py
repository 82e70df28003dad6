"""Entry: what keeps a thread from waiting for itself."""

from __future__ import annotations

import threading

from kclient._accel import holder_test, interrupting_text
from kclient.errors import IllegalStateError
from kclient.producer.internals.buffer_pool import BufferPool
from kclient.producer.internals.incomplete import IncompleteBatches


class Entry:
    """Knows whether the calling thread is already in a step of its producer, from which its caller has been called.

    That is a signal handler, or a `__del__` that the collector runs. What it would wait for may be its own thread.
    Thread-safe.
    """

    __slots__ = ("_incomplete", "_tests")

    def __init__(self, lock: threading.RLock, pool: BufferPool, incomplete: IncompleteBatches) -> None:
        self._incomplete = incomplete
        self._tests = tuple(map(holder_test, (lock, pool.lock, incomplete.lock)))

    def check_send(self) -> None:
        """Raise IllegalStateError if a batch cannot be made now."""
        if self._holds_locks():
            raise IllegalStateError(interrupting_text("The producer"))

    def check_wait(self) -> None:
        """Raise IllegalStateError if the I/O thread may be waiting for the calling thread."""
        if self._holds_locks() or any(batch.builder.entered for batch in self._incomplete.snapshot()):
            raise IllegalStateError(interrupting_text("The producer"))

    def _holds_locks(self) -> bool:
        return any(test() for test in self._tests)
