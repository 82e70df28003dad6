"""Limits on the number of connections, in all, of each listener and from one address."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import attrs

from kclient.errors import ConfigError

_INT_MAX = (1 << 31) - 1
_OVERRIDES = "max.connections.per.ip.overrides"


@attrs.frozen
class ConnectionLimits:
    """Most connections at a time. Immutable."""

    total: int = _INT_MAX
    per_address: int = _INT_MAX
    listeners: Sequence[int] = ()
    """The most of each listener; those that are not mentioned have no limit of their own."""
    overrides: Mapping[str, int] = MappingProxyType({})
    """The most from some addresses."""
    protected: int | None = None
    """The listener of brokers among several, for which others make room."""


class ConnectionQuotas:
    """Counts connections. Thread-safe: acceptors take places, processors give them back.

    As in Kafka, what is above the limit of the broker or of a listener waits to be accepted, and what is above that of
    an address is refused. `total` bounds all listeners but the one of brokers: that one takes a place though there is
    none, and the other listeners close what was used least recently until the number is right again. `descriptors` is
    the most connections for which the process has some.
    """

    def __init__(self, limits: ConnectionLimits, descriptors: int = _INT_MAX) -> None:
        self._limits = limits
        self._descriptors = descriptors
        self._changed = threading.Condition()
        self._by_address: dict[str, int] = {}
        self._by_listener: dict[int, int] = {}
        self._total = 0

    @property
    def total(self) -> int:
        """Connections open now."""
        return self._total

    def set_limits(self, limits: ConnectionLimits) -> None:
        """Have other limits from now on. Connections that are there stay, but for those above the total."""
        with self._changed:
            self._limits = limits
            self._changed.notify_all()

    def take_place(self, listener: int, stopped: Callable[[], bool]) -> bool:
        """Wait for a place of the broker and of the listener, and take it; False once `stopped` says so."""
        with self._changed:
            self._changed.wait_for(lambda: stopped() or self._has_place(listener))
            if stopped():
                return False
            self._by_listener[listener] = self._by_listener.get(listener, 0) + 1
            self._total += 1
            return True

    def wake(self) -> None:
        """Have those who wait for a place look whether they are stopped."""
        with self._changed:
            self._changed.notify_all()

    def admit(self, address: str) -> str | None:
        """Count a connection that has a place for its address; returns the setting that forbids it, or None."""
        with self._changed:
            if self._total > self._descriptors:
                return "the connections' share of the limit of open files (ulimit -n)"
            count = self._by_address.get(address, 0)
            overrides = self._limits.overrides
            if address in overrides:
                if count >= overrides[address]:
                    return _OVERRIDES
            elif count >= self._limits.per_address:
                return "max.connections.per.ip"
            self._by_address[address] = count + 1
            return None

    def give_back(self, listener: int) -> None:
        """Give back the place of a connection that was not admitted."""
        with self._changed:
            self._give_back(listener)

    def release(self, address: str, listener: int) -> None:
        """Give the place of a closed connection back."""
        with self._changed:
            count = self._by_address.get(address, 0)
            if count == 0:
                raise ValueError(f"No connection from {address} is counted")
            if count == 1:
                del self._by_address[address]
            else:
                self._by_address[address] = count - 1
            self._give_back(listener)

    def exceeded(self, listener: int) -> bool:
        """True while a connection of the listener is to be closed, as the broker has too many."""
        limits = self._limits
        return self._total > limits.total and listener != limits.protected

    def _has_place(self, listener: int) -> bool:
        limits = self._limits
        if (
            listener < len(limits.listeners)
            and self._by_listener.get(listener, 0) >= limits.listeners[listener]
        ):
            return False
        return listener == limits.protected or self._total < limits.total

    def _give_back(self, listener: int) -> None:
        self._by_listener[listener] -= 1
        self._total -= 1
        self._changed.notify_all()


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
