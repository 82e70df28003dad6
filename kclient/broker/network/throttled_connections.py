"""ThrottledConnections: connections from which nothing is read for a while, because of a quota (KIP-219)."""

from __future__ import annotations

import heapq

from kclient.utils.time import Time

_SLACK = 64


class ThrottledConnections:
    """Connections of a processor that are held back. Used by one thread.

    A connection goes on when both are over, its throttle and its request: the answer is sent at once.
    """

    def __init__(self, time: Time) -> None:
        self._time = time
        self._until_ms: dict[str, int] = {}
        self._waiting: set[str] = set()  # those whose request is over
        self._order: list[tuple[int, str]] = []  # also of those that have gone

    def hold(self, connection_id: str, throttle_ms: int) -> None:
        """Hold a connection back from now on."""
        until_ms = self._time.monotonic_ms() + throttle_ms
        self._until_ms[connection_id] = until_ms
        if len(self._order) > 2 * len(self._until_ms) + _SLACK:
            # Those that have gone would stay until their time comes, which may be weeks.
            self._order = [(until, each) for each, until in self._until_ms.items() if each != connection_id]
            heapq.heapify(self._order)
        heapq.heappush(self._order, (until_ms, connection_id))

    def may_go_on(self, connection_id: str) -> bool:
        """Return True if a connection whose request is over is not held back; else `released` will name it."""
        until_ms = self._until_ms.get(connection_id)
        if until_ms is None:
            return True
        if until_ms <= self._time.monotonic_ms():
            self.forget(connection_id)
            return True
        self._waiting.add(connection_id)
        return False

    def released(self) -> list[str]:
        """Return the connections that wait for nothing else, and need not wait any longer."""
        if not self._order:
            return []
        now_ms = self._time.monotonic_ms()
        found = []
        while self._order and self._order[0][0] <= now_ms:
            until_ms, connection_id = heapq.heappop(self._order)
            if self._until_ms.get(connection_id) == until_ms and connection_id in self._waiting:
                self.forget(connection_id)
                found.append(connection_id)
        return found

    def timeout_ms(self, timeout_ms: int) -> int:
        """Return the time until the next one is released, `timeout_ms` at most."""
        if not self._order:
            return timeout_ms
        return max(min(timeout_ms, self._order[0][0] - self._time.monotonic_ms()), 0)

    def forget(self, connection_id: str) -> None:
        """Forget a connection that goes on, or has gone."""
        self._until_ms.pop(connection_id, None)
        self._waiting.discard(connection_id)
