"""QuotaManager: what all kinds of quotas of users and clients have in common."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import attrs

from kclient.broker.quota.entity_quotas import EntityQuotas, Owner
from kclient.broker.quota.sensor_table import SensorTable
from kclient.metrics.stats import Avg
from kclient.utils.time import Time


@attrs.frozen
class QuotaUsage:
    """The use that is made of a quota by those who share it. Immutable."""

    user: str
    """Empty if the quota is one of a client id, whoever the user is."""
    client_id: str
    """Empty if the quota is one of a user, whatever the client is called."""
    limit: float
    used: float
    """In a second; of controller mutations the tokens that are left."""
    throttle_time_avg_ms: float
    """The mean of the last minute's throttles; NaN without one."""


class Sensor(Protocol):
    """Measures what those who share a quota use, and how long they are held back. The manager's lock guards it."""

    @property
    def throttle_time(self) -> Avg:
        """The throttles."""

    def measure(self, limit: float, now_ms: int) -> float:
        """Return the use of a quota of `limit` as of now, or what is left of it."""


S = TypeVar("S", bound=Sensor)


class QuotaManager(Generic[S]):
    """One kind of quota, and a sensor for each of those who share one. Thread-safe."""

    def __init__(self, make_sensor: Callable[[], S], time: Time) -> None:
        self.enabled = False
        """True if there is any quota of this kind."""
        self._time = time
        self._quotas = EntityQuotas()
        self._lock = threading.Lock()
        self._sensors: SensorTable[Owner, S] = SensorTable(make_sensor)

    def update(self, quotas: EntityQuotas) -> None:
        """Use these quotas from now on; what was measured stays."""
        with self._lock:
            self._quotas = quotas
            self.enabled = bool(quotas.limits)
            if not self.enabled:
                self._sensors.clear()

    def usage(self) -> list[QuotaUsage]:
        """Return the use of all quotas that are in use."""
        now_ms = self._time.monotonic_ms()
        with self._lock:
            self._sensors.expire(now_ms)
            return [
                QuotaUsage(
                    *owner, found[1], sensor.measure(found[1], now_ms), sensor.throttle_time.measure(now_ms)
                )
                for owner, sensor in self._sensors.items()
                if (found := self._quotas.find(*owner)) is not None and found[0] == owner
            ]
