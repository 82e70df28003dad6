"""Sensor: one place that measures, and all that is made of it."""

from __future__ import annotations

import threading

from kclient.metrics.measurement import Measurement
from kclient.metrics.metric_name import MetricName
from kclient.metrics.stats import Stat
from kclient.utils.time import Time


class Sensor:
    """Hands each measurement to its stats. Thread-safe."""

    __slots__ = ("_lock", "_stats", "_time")

    def __init__(self, time: Time) -> None:
        self._time = time
        # Reentrant: a signal handler or a __del__ that interrupts its holder may need it.
        self._lock = threading.RLock()
        self._stats: list[tuple[MetricName, Stat]] = []

    def add(self, name: MetricName, stat: Stat) -> None:
        """Measure `stat` too, under `name`."""
        with self._lock:
            self._stats.append((name, stat))

    def record(self, value: float = 1.0, events: int = 1, largest: float | None = None) -> None:
        """Take in `value`, the sum over `events` events: batches are recorded at once, never record by record.

        `largest` is the largest of them, if there is more than one and that is measured.
        """
        now_ms = self._time.monotonic_ms()
        with self._lock:
            for _, stat in self._stats:
                stat.record(value, now_ms, events, value if largest is None else largest)

    def measure(self) -> list[Measurement]:
        """Return the current values of the stats."""
        now_ms = self._time.monotonic_ms()
        with self._lock:
            return [Measurement(name, stat.measure(now_ms), stat.cumulative) for name, stat in self._stats]
