"""Throttler: a limit of bytes a second for all cleaner threads together."""

from __future__ import annotations

import threading
from collections.abc import Callable

from kclient.utils.time import Time

_LONGEST_WAIT_MS = 100


class Throttler:
    """Makes those wait who read and write more than `bytes_per_second` on average. Thread-safe."""

    def __init__(self, bytes_per_second: float, time: Time) -> None:
        self._bytes_per_ms = bytes_per_second / 1000
        self._time = time
        self._lock = threading.Lock()
        self._free_at_ms = 0.0

    def throttle(self, size: int, check: Callable[[], None]) -> None:
        """Account for `size` bytes and wait until they are within the limit.

        `check` is called in between, and may raise to end the wait.
        """
        with self._lock:
            # What was not used in the past is not to be made up for at once.
            free_at_ms = max(self._free_at_ms, self._time.monotonic_ms()) + size / self._bytes_per_ms
            self._free_at_ms = free_at_ms
        while (wait_ms := int(free_at_ms - self._time.monotonic_ms())) > 0:
            check()
            self._time.sleep_ms(min(wait_ms, _LONGEST_WAIT_MS))
