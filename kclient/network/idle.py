"""Finds the connections that have been idle for too long."""

from __future__ import annotations

from collections import OrderedDict

_NEVER_MS = 1 << 62


class IdleExpiry:
    """Least-recently-used order of connections. Used by one thread.

    A negative limit means that nothing expires.
    """

    __slots__ = ("_last_active", "_max_idle_ms", "next_expiry_ms")

    def __init__(self, max_idle_ms: int) -> None:
        self._max_idle_ms = max_idle_ms
        self._last_active: OrderedDict[str, int] = OrderedDict()
        self.next_expiry_ms = _NEVER_MS if max_idle_ms < 0 else 0
        """Before this `expired` need not be asked: what a connection does only puts its end off."""

    def touch(self, channel_id: str, now_ms: int) -> None:
        """The connection did something now."""
        self._last_active[channel_id] = now_ms
        self._last_active.move_to_end(channel_id)

    def remove(self, channel_id: str) -> None:
        """The connection is gone."""
        self._last_active.pop(channel_id, None)

    def least_recently_used(self) -> str | None:
        """The connection that did nothing for longest, None if there is none."""
        return next(iter(self._last_active), None)

    def expired(self, now_ms: int) -> list[str]:
        """The connections idle for longer than the limit, longest first; they stay known until removed."""
        if self._max_idle_ms < 0:
            return []
        found = []
        self.next_expiry_ms = now_ms + self._max_idle_ms
        for channel_id, active_ms in self._last_active.items():
            if now_ms - active_ms <= self._max_idle_ms:
                self.next_expiry_ms = active_ms + self._max_idle_ms + 1
                break
            found.append(channel_id)
        return found
