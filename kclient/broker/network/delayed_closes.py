"""DelayedCloses: connections that are not served, and closed after a while only: their peers come less often."""

from __future__ import annotations

import heapq
import itertools
import socket

from kclient.utils.time import Time

MOST_SOCKETS = 128


class DelayedCloses:
    """Sockets and when to close them. Used by one thread.

    There are at most `most`, as each takes a descriptor; one more is closed at once.
    """

    def __init__(self, time: Time, *, most: int = MOST_SOCKETS) -> None:
        self._time = time
        self._most = most
        self._sockets: list[tuple[int, int, socket.socket]] = []
        self._order = itertools.count()

    def add(self, sock: socket.socket, delay_ms: int) -> None:
        """Close `sock` in `delay_ms`."""
        if len(self._sockets) >= self._most:
            sock.close()
        else:
            entry = self._time.monotonic_ms() + delay_ms, next(self._order), sock
            heapq.heappush(self._sockets, entry)

    def timeout_s(self) -> float | None:
        """Return the time until the next one is to be closed, None if there is none."""
        if not self._sockets:
            return None
        return max(self._sockets[0][0] - self._time.monotonic_ms(), 0) / 1000

    def close_due(self) -> None:
        """Close those whose time has come."""
        now_ms = self._time.monotonic_ms()
        while self._sockets and self._sockets[0][0] <= now_ms:
            heapq.heappop(self._sockets)[2].close()

    def close(self) -> None:
        """Close all."""
        while self._sockets:
            self._sockets.pop()[2].close()
