"""Limits on the number of connections, in all and from one address."""

from __future__ import annotations

import threading

_INT_MAX = (1 << 31) - 1


class ConnectionQuotas:
    """Counts connections. Thread-safe: the acceptor takes places, the processors give them back."""

    __slots__ = ("_by_address", "_descriptors", "_lock", "_max_connections", "_max_per_address", "_total")

    def __init__(
        self, max_connections: int, max_connections_per_ip: int, descriptors: int = _INT_MAX
    ) -> None:
        self._max_connections = max_connections
        self._descriptors = descriptors
        self._max_per_address = max_connections_per_ip
        self._lock = threading.Lock()
        self._by_address: dict[str, int] = {}
        self._total = 0

    @property
    def total(self) -> int:
        """Connections open now."""
        return self._total

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
