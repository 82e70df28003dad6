"""Limits on the number of connections, in all and from one address."""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import attrs

from kclient.errors import ConfigError

_INT_MAX = (1 << 31) - 1
_OVERRIDES = "max.connections.per.ip.overrides"


@attrs.define(eq=False)
class ConnectionQuotas:
    """Counts connections. Thread-safe: the acceptor takes places, the processors give them back."""

    _max_connections: int
    _max_per_address: int
    _descriptors: int = _INT_MAX
    _overrides: Mapping[str, int] = MappingProxyType({})
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
            if address in self._overrides:
                if count >= self._overrides[address]:
                    return _OVERRIDES
            elif count >= self._max_per_address:
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


def parse_overrides(entries: Sequence[str]) -> dict[str, int]:
    """Parse `HOST:COUNT` entries, in which an IPv6 address has no brackets. Raises ConfigError."""
    overrides = {}
    for entry in entries:
        host, _, count = entry.rpartition(":")
        if not host or not count.isdecimal() or int(count) > _INT_MAX:
            raise ConfigError(f"{_OVERRIDES}: {entry!r} is not of the form HOST:COUNT", name=_OVERRIDES)
        overrides[host.strip("[]")] = int(count)
    return overrides


def by_address(overrides: Mapping[str, int]) -> dict[str, int]:
    """The same by the addresses of the hosts. Raises ConfigError for a name that cannot be resolved."""
    found: dict[str, int] = {}
    for host, count in overrides.items():
        try:
            addresses = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except OSError as error:
            raise ConfigError(f"{_OVERRIDES}: {host} cannot be resolved: {error}", name=_OVERRIDES) from error
        found.update((str(address[0]), count) for *_, address in addresses)
    return found
