"""ClientQuotaManager: what clients take a second, held against their quotas."""

from __future__ import annotations

import attrs

from kclient.broker.quota.quota_manager import QuotaManager
from kclient.broker.quota.windows import MOST_MS, QuotaWindows, throttle_ms
from kclient.metrics.stats import Avg, Rate
from kclient.utils.time import Time


@attrs.frozen
class RateSensor:
    """Measures what those who share a quota take, and how long they are held back."""

    rate: Rate
    throttle_time: Avg = attrs.field(factory=Avg)

    def measure(self, limit: float, now_ms: int) -> float:
        """Return the rate as of now."""
        del limit  # what they take is the same whatever they may take
        return self.rate.measure(now_ms)


class ClientQuotaManager(QuotaManager[RateSensor]):
    """One kind of quota: bytes produced, bytes fetched or time of requests. Thread-safe.

    Values are in what the quota is in. A client without a quota costs no more than looking for one, which takes no
    lock. A throttle is `most_ms` at most.
    """

    def __init__(self, windows: QuotaWindows, time: Time, *, most_ms: int = MOST_MS) -> None:
        super().__init__(lambda: RateSensor(windows.rate()), time)
        self._windows = windows
        self._most_ms = most_ms

    def record(self, user: str, client_id: str | None, value: float) -> int:
        """Take note of what a client has taken; returns for how many ms it is to be held back."""
        found = self._quotas.find(user, client_id or "")
        if found is None:
            return 0
        owner, limit = found
        now_ms = self._time.monotonic_ms()
        with self._lock:
            sensor = self._sensors.get(owner, now_ms)
            sensor.rate.record(value, now_ms, 1, value)
            return self._throttle(sensor, limit, now_ms)

    def note(self, user: str, client_id: str | None, value: float) -> None:
        """Take note of what a client has taken, for what comes later: it is not held back for this."""
        found = self._quotas.find(user, client_id or "")
        if found is not None:
            now_ms = self._time.monotonic_ms()
            with self._lock:
                self._sensors.get(found[0], now_ms).rate.record(value, now_ms, 1, value)

    def record_unless_exceeded(self, user: str, client_id: str | None, value: float) -> tuple[int, bool]:
        """Take note of what a client is about to get; returns for how many ms it is to be held back, and if it gets it.

        Who would exceed the quota gets nothing, and nothing is taken note of. What alone exceeds it is given after a
        silence, and held against the client as long as it takes: Kafka never gives it, and its reader never gets on.
        """
        found = self._quotas.find(user, client_id or "")
        if found is None:
            return 0, True
        owner, limit = found
        now_ms = self._time.monotonic_ms()
        with self._lock:
            sensor = self._sensors.get(owner, now_ms)
            silent = sensor.rate.measure(now_ms) <= 0
            sensor.rate.record(value, now_ms, 1, value)
            held_ms = self._throttle(sensor, limit, now_ms)
            given = held_ms == 0 or (silent and value > self._windows.most(limit))
            if not given:
                sensor.rate.record(-value, now_ms, 1, -value)
            return held_ms, given

    def take_back(self, user: str, client_id: str | None, value: float) -> None:
        """Forget what was recorded a moment ago: the client does not get it."""
        self.note(user, client_id, -value)

    def most(self, user: str, client_id: str | None) -> int | None:
        """Return the most that a client can get at once after a silence, None if it has no quota."""
        found = self._quotas.find(user, client_id or "")
        return None if found is None else int(self._windows.most(found[1]))

    def _throttle(self, sensor: RateSensor, limit: float, now_ms: int) -> int:
        held_ms = throttle_ms(sensor.rate, limit, now_ms, self._most_ms)
        if held_ms:
            sensor.throttle_time.record(held_ms, now_ms, 1, held_ms)
        return held_ms
