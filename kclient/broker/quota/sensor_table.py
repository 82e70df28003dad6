"""SensorTable: what is measured of each that has a quota, as long as there is something to measure."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K")
S = TypeVar("S")

IDLE_MS = 3_600_000
MOST_SENSORS = 10_000


class SensorTable(Generic[K, S]):
    """Sensors by their owners, made when they are first asked for. The lock of its manager guards it.

    One that nothing was asked of for an hour goes, as in Kafka. There are never more than `most`: a client may call
    itself anything, and under a default quota each name has a sensor. For a new one the one that was idle for longest
    goes, and its owner begins anew.
    """

    def __init__(self, make: Callable[[], S], *, most: int = MOST_SENSORS) -> None:
        self._make = make
        self._most = most
        self._sensors: OrderedDict[K, tuple[S, int]] = (
            OrderedDict()
        )  # with when they were used, the oldest first

    def __len__(self) -> int:
        return len(self._sensors)

    def get(self, owner: K, now_ms: int) -> S:
        """Return the sensor of `owner`, which is in use now."""
        known = self._sensors.pop(owner, None)
        self.expire(now_ms)
        if known is None and len(self._sensors) >= self._most:
            self._sensors.popitem(last=False)
        sensor = self._make() if known is None or known[1] <= now_ms - IDLE_MS else known[0]
        self._sensors[owner] = sensor, now_ms
        return sensor

    def expire(self, now_ms: int) -> None:
        """Let go of sensors that were idle for too long."""
        while self._sensors:
            owner, (_, used_ms) = next(iter(self._sensors.items()))
            if used_ms > now_ms - IDLE_MS:
                return
            del self._sensors[owner]

    def items(self) -> Iterator[tuple[K, S]]:
        """Return all sensors with their owners."""
        return ((owner, sensor) for owner, (sensor, _) in self._sensors.items())

    def clear(self) -> None:
        """Let go of all."""
        self._sensors.clear()
