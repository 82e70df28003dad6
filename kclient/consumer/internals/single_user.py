"""The guard around every call of a consumer: one thread, open, and in the process that made it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from types import TracebackType

from kclient._accel import forks
from kclient.errors import ClientClosedError, ConcurrentModificationError, KafkaError
from kclient.utils.fork import ForkGuard

_KEY = "owner"


class SingleUser:
    """A context manager that lets one thread in at a time, and that one again from within (callbacks).

    Entering raises ForkedClientError, ClientClosedError or ConcurrentModificationError, and never waits. Who enters
    what is `unsettled` calls `settle` first, which must be able to go on where an exception ended it the last time.
    """

    __slots__ = ("_depth", "_generation", "_owner", "_settle", "closed", "guard", "unsettled")

    def __init__(self, what: str, settle: Callable[[], None]) -> None:
        self._settle = settle
        self.unsettled = False
        self.guard = ForkGuard(what)
        self._generation = forks.generation
        # A dict and not a lock: who holds it and that it is held are one atomic step. A Ctrl-C between two steps
        # would leave a lock that is held by nobody, and the consumer of no use.
        self._owner: dict[str, int] = {}
        self._depth = 0
        self.closed = False

    @property
    def free(self) -> bool:
        """True if this thread could enter without anything to be settled, and nobody is inside."""
        return not (self._owner or self.unsettled or self.closed or forks.generation != self._generation)

    def close(self) -> None:
        """Let nobody in any more."""
        self.closed = True

    def settle(self) -> None:
        """Settle what is unsettled; whoever may enter next does if this thread may not."""
        with contextlib.suppress(KafkaError), self:
            pass

    def __enter__(self) -> None:
        if forks.generation != self._generation:
            self.guard.check()
        me = threading.get_ident()
        if self._owner.get(_KEY) != me:
            if self.closed:
                raise ClientClosedError("The consumer is closed; create a new one.")
            if self._owner.setdefault(_KEY, me) != me:
                raise ConcurrentModificationError
        self._depth += 1
        if self.unsettled:
            try:
                self._settle()
            except BaseException:
                self.__exit__(None, None, None)
                raise
            self.unsettled = False

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._depth -= 1
        if self._depth <= 0:
            self._depth = 0
            self._owner.clear()
