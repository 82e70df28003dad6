"""The memory that requests may take up, from their first byte until they are answered."""

from __future__ import annotations

import threading
from collections.abc import Callable

import attrs

NEWCOMER_BYTES = 512 * 1024
"""Bytes that a connection may hold, without a share in common, before its first request was whole."""

_SHARE = 8


class RequestMemory:
    """The bytes of all requests that are arriving, queued or being handled. Thread-safe.

    `max_bytes` bounds them (negative: nothing does). When it is reached, whoever wants more waits, but for one at a
    time: it may have whatever it takes to be finished and answered, or requests that have come in part would wait
    for each other for ever. Large requests leave an eighth to small ones. An eighth is also what all large requests
    of newcomers may have together, and half of it if they are very large: of a connection that has not yet brought
    one whole request, nobody knows that it ever will.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._share = max_bytes // _SHARE
        self._lock = threading.Lock()
        self._held = 0
        self._held_by_newcomers = 0  # of what is above NEWCOMER_BYTES each
        self._finishing: ConnectionMemory | None = None
        self._waiting: dict[ConnectionMemory, None] = {}

    @property
    def held(self) -> int:
        """Bytes of all requests now."""
        return self._held

    @property
    def max_bytes(self) -> int:
        """The bound, negative if there is none."""
        return self._max_bytes

    @property
    def exhausted(self) -> bool:
        """True while somebody waits."""
        return bool(self._waiting)

    def connection(self, on_room: Callable[[], None]) -> ConnectionMemory:
        """Return the memory of a new connection. `on_room` is called, on any thread, when its wait is over."""
        return ConnectionMemory(self, on_room)

    def hold(self, asking: ConnectionMemory, size: int, whole: int) -> bool:
        """Do what `ConnectionMemory.hold` does."""
        with self._lock:
            if size <= asking.held:
                return True
            if asking in self._waiting:
                return False
            asking.wanted, asking.whole = size, whole
            if self._grant(asking):
                return True
            self._waiting[asking] = None
            return False

    def take(self, asking: ConnectionMemory, size: int) -> None:
        """Do what `ConnectionMemory.take` does."""
        with self._lock:
            self._change(asking, size)

    def release(self, leaving: ConnectionMemory) -> None:
        """Do what `ConnectionMemory.release` does."""
        with self._lock:
            self._waiting.pop(leaving, None)
            self._change(leaving, 0)
            if self._finishing is leaving:
                self._finishing = None
            served = [waiting for waiting in self._waiting if self._grant(waiting)]
            for waiting in served:
                del self._waiting[waiting]
        for waiting in served:
            waiting.on_room()

    def prove(self, proven: ConnectionMemory) -> None:
        """Do what `ConnectionMemory.request_is_whole` does."""
        with self._lock:
            self._held_by_newcomers -= proven.beyond(proven.held)
            proven.proven = True

    def _grant(self, asking: ConnectionMemory) -> bool:
        if self._finishing is asking or self._fits(asking):
            pass
        elif self._finishing is None:
            self._finishing = asking
        else:
            return False
        self._change(asking, asking.wanted)
        return True

    def _fits(self, asking: ConnectionMemory) -> bool:
        if self._max_bytes < 0:
            return True
        # The one that may have whatever it takes is not counted, or it would have what is left to others.
        others = [asking] if self._finishing is None else [asking, self._finishing]
        beyond = asking.beyond(asking.wanted)
        if beyond:
            room = self._share if asking.whole <= self._share // _SHARE else self._share // 2
            held = self._held_by_newcomers - sum(other.beyond(other.held) for other in others)
            if held + beyond > room:
                return False
        room = self._max_bytes - (self._share if asking.whole > NEWCOMER_BYTES else 0)
        return self._held - sum(other.held for other in others) + asking.wanted <= room

    def _change(self, holder: ConnectionMemory, size: int) -> None:
        self._held += size - holder.held
        self._held_by_newcomers += holder.beyond(size) - holder.beyond(holder.held)
        holder.held = size


@attrs.define(eq=False)
class ConnectionMemory:
    """The memory that the request of one connection holds. For its network thread alone."""

    _memory: RequestMemory
    on_room: Callable[[], None]
    held: int = 0
    wanted: int = 0
    whole: int = 0
    proven: bool = False

    def hold(self, size: int, whole: int) -> bool:
        """Have `size` bytes in all, of a request of `whole`; if there is no room now, False, and `on_room` is called
        once there is.
        """
        return self._memory.hold(self, size, whole)

    def take(self, size: int) -> None:
        """Have `size` bytes in all, whether there is room or not."""
        self._memory.take(self, size)

    def request_is_whole(self) -> None:
        """The connection has brought a whole request."""
        if not self.proven:
            self._memory.prove(self)

    def release(self) -> None:
        """Hold nothing, and wait for nothing."""
        self._memory.release(self)

    def beyond(self, size: int) -> int:
        """Return the part of `size` bytes that counts against what newcomers have together."""
        return 0 if self.proven else max(size - NEWCOMER_BYTES, 0)
