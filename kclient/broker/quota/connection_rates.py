"""ConnectionRates: new connections a second, of the broker, of each listener and of each address (KIP-612)."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from kclient.broker.metadata.image.quotas import QuotaEntity
from kclient.broker.quota.quota_keys import CONNECTION_CREATION_RATE, IP, address_of, canonical
from kclient.broker.quota.sensor_table import SensorTable
from kclient.broker.quota.windows import QuotaWindows, throttle_ms
from kclient.metrics.stats import Rate
from kclient.utils.log_context import LogContext
from kclient.utils.time import Time

if TYPE_CHECKING:
    from kclient.broker.config import BrokerConfig

UNLIMITED = (1 << 31) - 1


@attrs.frozen
class ConnectionRateUsage:
    """The use that an address makes of its quota. Immutable."""

    address: str
    limit: float
    used: float


class ConnectionRates:
    """Rates of new connections. Thread-safe: acceptors record, changes of metadata set the quotas of addresses.

    `broker_limit` and `listener_limits` are connections a second, UNLIMITED for no limit. Nobody is held back for
    longer than a window, as in Kafka.
    """

    def __init__(
        self,
        windows: QuotaWindows,
        time: Time,
        *,
        broker_limit: int,
        listener_limits: Sequence[int],
        log_context: LogContext,
    ) -> None:
        self._windows = windows
        self._time = time
        self._log = log_context.logger(__name__)
        self._lock = threading.Lock()
        self._broker = windows.rate(), broker_limit
        self._listeners = [(windows.rate(), limit) for limit in listener_limits]
        self._addresses: SensorTable[str, Rate] = SensorTable(windows.rate)
        self._limits: Mapping[str | None, float] = {}

    @classmethod
    def of(cls, config: BrokerConfig, time: Time, log_context: LogContext) -> ConnectionRates:
        """Return the rates of a broker with these settings."""
        return cls(
            QuotaWindows(config.quota_window_num, config.quota_window_size_seconds * 1000),
            time,
            broker_limit=config.max_connection_creation_rate,
            listener_limits=_listener_limits(config),
            log_context=log_context,
        )

    def set_limits(self, config: BrokerConfig) -> None:
        """Have the limits of these settings from now on."""
        limits = _listener_limits(config)
        with self._lock:
            self._broker = self._broker[0], config.max_connection_creation_rate
            self._listeners = [
                (rate, limit) for (rate, _), limit in zip(self._listeners, limits, strict=True)
            ]

    def update(self, entities: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """Use these quotas from now on. May ask the resolver for the addresses of hosts."""
        limits: dict[str | None, float] = {}
        for entity, quotas in entities.items():
            host = dict(entity).get(IP)
            value = quotas.get(CONNECTION_CREATION_RATE)
            if value is None or not math.isfinite(value) or (IP, host) not in entity:
                continue
            address = None if host is None else address_of(host)
            if host is not None and address is None:
                self._log.warning("The quota of %s has no effect: it has no address at the moment", host)
            else:
                limits[address] = value
        with self._lock:
            self._limits = limits
            if not limits:
                self._addresses.clear()

    def record(self, listener: int) -> int:
        """Take note of a connection; returns for how many ms the listener is to take no others."""
        held_ms = 0
        for rate, limit in (self._broker, self._listeners[listener]):
            if limit != UNLIMITED:
                now_ms = self._time.monotonic_ms()
                with self._lock:
                    rate.record(1, now_ms, 1, 1)
                    held_ms = max(held_ms, throttle_ms(rate, limit, now_ms, self._windows.window_ms))
        return held_ms

    def refuse(self, listener: int, host: str) -> int:
        """Return 0 if a connection from this address may come in, and take note of it.

        Else the time in ms after which it is to be closed; it counts as none, then.
        """
        limits = self._limits
        if not limits:
            return 0
        address = canonical(host)
        limit = limits.get(address, limits.get(None))
        if limit is None:
            return 0
        now_ms = self._time.monotonic_ms()
        with self._lock:
            rate = self._addresses.get(address, now_ms)
            rate.record(1, now_ms, 1, 1)
            held_ms = throttle_ms(rate, limit, now_ms, self._windows.window_ms)
            if held_ms:
                rate.record(-1, now_ms, 1, -1)
                for other, its_limit in (self._broker, self._listeners[listener]):
                    if its_limit != UNLIMITED:
                        other.record(-1, now_ms, 1, -1)
        return held_ms

    def usage(self) -> list[ConnectionRateUsage]:
        """Return the use of the quotas of addresses that are in use."""
        now_ms = self._time.monotonic_ms()
        with self._lock:
            self._addresses.expire(now_ms)
            return [
                ConnectionRateUsage(address, limit, rate.measure(now_ms))
                for address, rate in self._addresses.items()
                if (limit := self._limits.get(address, self._limits.get(None))) is not None
            ]


def _listener_limits(config: BrokerConfig) -> list[int]:
    return [
        config.listener_config(listener).max_connection_creation_rate
        for listener in config.listeners_with_security()
    ]
