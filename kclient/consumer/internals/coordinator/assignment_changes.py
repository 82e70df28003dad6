"""Changes of the assignment that the application carries out one after another, as the membership sees them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

import attrs

from kclient.consumer.internals.rebalance_callback import RebalanceCallback


@attrs.define(eq=False, repr=False)
class AssignmentChanges:
    """Posts callbacks to the application, the next one when the one before was carried out. For the I/O thread."""

    _post: Callable[[RebalanceCallback], None]
    _current: RebalanceCallback | None = attrs.field(default=None, init=False)
    _next: deque[RebalanceCallback] = attrs.field(factory=deque, init=False)
    _on_done: Callable[[], None] | None = attrs.field(default=None, init=False)

    @property
    def under_way(self) -> bool:
        """True until the application has carried out all that was begun, and was not cancelled."""
        return self._current is not None

    def begin(
        self, callbacks: Iterable[RebalanceCallback], on_done: Callable[[], None] | None = None
    ) -> None:
        """Have `callbacks` carried out in order, and `on_done` called after the last. There are none under way."""
        assert self._current is None
        self._next.extend(callbacks)
        self._on_done = on_done
        self._go_on()

    def done(self, callback: RebalanceCallback) -> None:
        """The application has carried out `callback`, which may be one from before a `cancel`."""
        if callback is self._current:
            self._current = None
            self._go_on()

    def cancel(self) -> None:
        """Let nothing more happen. One that the application has begun is under way until it is done."""
        self._next.clear()
        self._on_done = None
        if self._current is not None and self._current.cancel():
            self._current = None

    def _go_on(self) -> None:
        if self._next:
            self._current = self._next.popleft()
            self._post(self._current)
        elif self._on_done is not None:
            on_done, self._on_done = self._on_done, None
            on_done()
