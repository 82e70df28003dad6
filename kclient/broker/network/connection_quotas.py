"""Limits on the number of connections, in all and from one address."""

from __future__ import annotations

import threading

import attrs

_INT_MAX = (1 << 31) - 1


@attrs.define(eq=False)
class ConnectionQuotas:
    """Counts connections. Thread-safe: the acceptor takes places, the processors give them back."""

    _max_connections: int
    _max_per_address: int
    _descriptors: int = _INT_MAX
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)
    _by_address: dict[str, int] = attrs.field(factory=dict, init=False)
    _total: int = attrs.field(default=0, init=False)

    @property
    def total(self) -> int:
        """Connections open now."""
        return self._total

    def set_limits(self, max_connections: int, max_per_address: int) -> None:
        """Have other limits from now on. Connections that are there stay."""
        with self._lock:
            self._max_connections = max_connections
            self._max_per_address = max_per_address

    def acquire(self, address: str) -> str | None:
        """Take a place for a connection from `address`; returns the setting that forbids it, None if it is taken."""
        with self._lock:
            if self._total >= self._descriptors:
                return "the connections' share of the limit of open files (ulimit -n)"
            if self._total >= self._max_connections:
                return "max.connections"
            count = self._by_address.get(address, 0)
            if count >= self._max_per_address:
                return "max.connections.per.ip"
            self._by_address[address] = count + 1
            self._total += 1
            return None

    def release(self, address: str) -> None:
        """Give the place of a closed connection back."""
        with self._lock:
            count = self._by_address.get(address, 0)
            if count == 0:
                raise ValueError(f"No connection from {address} is counted")
            self._total -= 1
            if count == 1:
                del self._by_address[address]
            else:
                self._by_address[address] = count - 1
