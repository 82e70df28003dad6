"""Time as an argument: the clock that components take instead of calling `time` themselves.

Deadlines and intervals use the monotonic clock, record timestamps the wall clock, so a clock that is set back
neither fires nor delays a timer. Tests pass a clock of their own (MockTime).
"""

from __future__ import annotations

import abc
import threading
import time as _time
from collections.abc import Callable

NS_PER_MS = 1_000_000


class Time(abc.ABC):
    """A source of time. Implementations are thread-safe."""

    @abc.abstractmethod
    def monotonic_ms(self) -> int:
        """Milliseconds of a clock that never goes back; only differences mean anything."""

    def monotonic_ns(self) -> int:
        """The same in nanoseconds, for what is measured rather than waited for."""
        return self.monotonic_ms() * NS_PER_MS

    @abc.abstractmethod
    def wall_ms(self) -> int:
        """Milliseconds since the epoch, as written into records."""

    @abc.abstractmethod
    def sleep_ms(self, duration_ms: int) -> None:
        """Block the calling thread for `duration_ms` of this clock."""

    @abc.abstractmethod
    def wait_for(
        self, condition: threading.Condition, predicate: Callable[[], bool], timeout_ms: int
    ) -> bool:
        """Wait on `condition` (held by the caller) until `predicate` is true or `timeout_ms` passed on this clock.

        Returns the last value of the predicate.
        """

    @abc.abstractmethod
    def wait_for_lock(self, lock: threading.Lock, timeout_ms: int) -> bool:
        """Acquire `lock`, which another thread will release; False if `timeout_ms` passed on this clock before."""

    def timer(self, timeout_ms: int) -> Timer:
        """A deadline `timeout_ms` from now."""
        return Timer(self, timeout_ms)


class SystemTime(Time):
    """The clocks of the operating system."""

    monotonic_ns = staticmethod(_time.monotonic_ns)

    def monotonic_ms(self) -> int:
        return _time.monotonic_ns() // 1_000_000

    def wall_ms(self) -> int:
        return _time.time_ns() // 1_000_000

    def sleep_ms(self, duration_ms: int) -> None:
        if duration_ms > 0:
            _time.sleep(duration_ms / 1000)

    def wait_for(
        self, condition: threading.Condition, predicate: Callable[[], bool], timeout_ms: int
    ) -> bool:
        # threading.TIMEOUT_MAX bounds what a lock accepts; a longer wait is "for ever" to any caller.
        return condition.wait_for(predicate, min(max(timeout_ms, 0) / 1000, threading.TIMEOUT_MAX))

    def wait_for_lock(self, lock: threading.Lock, timeout_ms: int) -> bool:
        return lock.acquire(timeout=min(max(timeout_ms, 0) / 1000, threading.TIMEOUT_MAX))


SYSTEM_TIME = SystemTime()


class Timer:
    """A deadline that several blocking steps share. Used by one thread."""

    __slots__ = ("_deadline_ms", "started_ms", "time", "timeout_ms")

    def __init__(self, time: Time, timeout_ms: int) -> None:
        self.time = time
        self.timeout_ms = timeout_ms
        self.started_ms = time.monotonic_ms()
        """The time it was made or last reset, on the monotonic clock."""
        self._deadline_ms = self.started_ms + max(timeout_ms, 0)

    @property
    def deadline_ms(self) -> int:
        """The deadline on the monotonic clock."""
        return self._deadline_ms

    def now_ms(self) -> int:
        """The current monotonic time of the clock behind this timer."""
        return self.time.monotonic_ms()

    def remaining_ms(self) -> int:
        """Milliseconds left, never negative."""
        return max(self._deadline_ms - self.time.monotonic_ms(), 0)

    def elapsed_ms(self) -> int:
        """Milliseconds since the timer was made or last reset."""
        return self.time.monotonic_ms() - self.started_ms

    def is_expired(self) -> bool:
        """True once the deadline has come."""
        return self.time.monotonic_ms() >= self._deadline_ms

    def reset(self, timeout_ms: int) -> None:
        """Start again with `timeout_ms` from now."""
        self.timeout_ms = timeout_ms
        self.started_ms = self.time.monotonic_ms()
        self._deadline_ms = self.started_ms + max(timeout_ms, 0)
