"""DelayedOperation: a request that cannot be answered yet."""

from __future__ import annotations

import abc
import threading
from collections.abc import Callable

import attrs

from kclient.broker.timer.timing_wheel import TimerTask


@attrs.define(eq=False)
class Watch:
    """An operation's entry on watch lists. The lists may keep it for a while after the operation is complete."""

    operation: DelayedOperation | None
    """None once it is complete: what is left on the lists holds no request."""


@attrs.define(eq=False)
class DelayedOperation(TimerTask):
    """Something that completes once: when its condition holds, or when `delay_ms` have passed. Thread-safe.

    A subclass implements `try_complete` (check the condition and call `force_complete` if it holds),
    `on_complete` (answer) and, if it wants to know, `on_expiration`. `lock` is held around `try_complete`;
    several operations that look at the same state may share it. It is re-entrant.
    """

    lock: threading.RLock = attrs.field(factory=threading.RLock, kw_only=True)
    watch: Watch = attrs.field(init=False)
    _once: threading.Lock = attrs.field(factory=threading.Lock, init=False)
    _completed: bool = attrs.field(default=False, init=False)

    @watch.default
    def _own_watch(self) -> Watch:
        return Watch(self)

    @abc.abstractmethod
    def try_complete(self) -> bool:
        """Call `force_complete` if the condition holds, and return what it returned; False otherwise."""

    @abc.abstractmethod
    def on_complete(self) -> None:
        """Called exactly once, by the thread that completed the operation."""

    def on_expiration(self) -> None:
        """Called after `on_complete` if it was the time that completed it; does nothing by default."""

    def is_completed(self) -> bool:
        """True once the operation is complete or being completed."""
        return self._completed

    def force_complete(self) -> bool:
        """Complete the operation whatever its condition; True for the one call that did it."""
        # A lock that is taken once and never released is Python's compare-and-set.
        if not self._once.acquire(blocking=False):
            return False
        self._completed = True
        self.watch.operation = None
        self.cancel()
        self.on_complete()
        return True

    def safe_try_complete(self) -> bool:
        """`try_complete` under the lock; False without a try if the operation is complete."""
        with self.lock:
            return not self._completed and self.try_complete()

    def safe_try_complete_or_else(self, otherwise: Callable[[], None]) -> bool:
        """Under the lock: try, and if that fails run `otherwise` and try again."""
        with self.lock:
            if self.try_complete():
                return True
            otherwise()
            return not self._completed and self.try_complete()

    def run(self) -> None:
        if self.force_complete():
            self.on_expiration()
