"""MockTime: a clock that a test sets."""

from __future__ import annotations

import threading
import time as _time
from collections.abc import Callable

from kclient.utils.time import Time

_LOOK_AGAIN_S = 0.002
_PATIENCE_S = 30.0


class MockTime(Time):
    """Monotonic and wall clock that only move when told. Thread-safe.

    The monotonic one begins beyond 2**31 ms, where that of a machine is that has been up for a month.

    `auto_tick_ms` moves them by that much at every look, so that code which waits for a deadline on its own
    thread comes to an end. Sleeping moves the clock and returns at once. Waiting on a condition or a lock waits
    for real: for who notifies or releases it, or for another thread to move the clock past the deadline; it raises
    AssertionError when neither has happened for 30 real seconds, so that a wrong test fails and does not
    hang.
    """

    def __init__(
        self, *, monotonic_ms: int = 10_000_000_000, wall_ms: int = 1_700_000_000_000, auto_tick_ms: int = 0
    ) -> None:
        self._lock = threading.Lock()
        self._monotonic_ms = monotonic_ms
        self._wall_ms = wall_ms
        self._auto_tick_ms = auto_tick_ms

    def monotonic_ms(self) -> int:
        with self._lock:
            self._move(self._auto_tick_ms)
            return self._monotonic_ms

    def wall_ms(self) -> int:
        with self._lock:
            self._move(self._auto_tick_ms)
            return self._wall_ms

    def advance(self, duration_ms: int) -> None:
        """Move both clocks on; waiters look at them soon after. Negative raises ValueError."""
        if duration_ms < 0:
            raise ValueError(f"Time does not run backwards: {duration_ms}")
        with self._lock:
            self._move(duration_ms)

    def set_wall_ms(self, wall_ms: int) -> None:
        """Set the wall clock, also back, as an operator might; the monotonic clock does not notice."""
        with self._lock:
            self._wall_ms = wall_ms

    def sleep_ms(self, duration_ms: int) -> None:
        self.advance(max(duration_ms, 0))

    def wait_for(
        self, condition: threading.Condition, predicate: Callable[[], bool], timeout_ms: int
    ) -> bool:
        deadline_ms = self.monotonic_ms() + max(timeout_ms, 0)
        patience_ends = _time.monotonic() + _PATIENCE_S
        while not predicate():
            if self.monotonic_ms() >= deadline_ms:
                return predicate()
            if _time.monotonic() > patience_ends:
                raise AssertionError("Nobody notified the condition or advanced the MockTime")
            # Looking again by itself, rather than being told by advance(), which would need the condition's
            # lock and could deadlock with a caller that holds it.
            condition.wait(_LOOK_AGAIN_S)
        return True

    def wait_for_lock(self, lock: threading.Lock, timeout_ms: int) -> bool:
        deadline_ms = self.monotonic_ms() + max(timeout_ms, 0)
        patience_ends = _time.monotonic() + _PATIENCE_S
        while not lock.acquire(timeout=_LOOK_AGAIN_S):
            if self.monotonic_ms() >= deadline_ms:
                return lock.acquire(blocking=False)
            if _time.monotonic() > patience_ends:
                raise AssertionError("Nobody released the lock or advanced the MockTime")
        return True

    def _move(self, duration_ms: int) -> None:
        self._monotonic_ms += duration_ms
        self._wall_ms += duration_ms
