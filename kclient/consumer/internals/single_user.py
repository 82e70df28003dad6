"""The guard around every call of a consumer: one thread, open, and in the process that made it."""

from __future__ import annotations

import threading
from types import TracebackType

from kclient.errors import ClientClosedError, ConcurrentModificationError
from kclient.utils.fork import ForkGuard


class SingleUser:
    """A context manager that lets one thread in at a time, and that one again from within (callbacks).

    Entering raises ForkedClientError, ClientClosedError or ConcurrentModificationError, and never waits.
    """

    __slots__ = ("_depth", "_fork", "_lock", "_owner", "closed")

    def __init__(self, what: str) -> None:
        self._fork = ForkGuard(what)
        self._lock = threading.Lock()
        self._owner: int | None = None
        self._depth = 0
        self.closed = False

    @property
    def forked(self) -> bool:
        """Whether this is a child of the process that made the consumer."""
        return self._fork.forked

    def __enter__(self) -> None:
        me = threading.get_ident()
        if self._owner == me:
            self._depth += 1
            return
        self._fork.check()
        if self.closed:
            raise ClientClosedError("The consumer is closed; create a new one.")
        if not self._lock.acquire(blocking=False):
            raise ConcurrentModificationError
        self._owner = me

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._depth:
            self._depth -= 1
            return
        self._owner = None
        self._lock.release()
