"""ShareFetchBuffer: where share fetches change threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

import attrs

from kclient.consumer.internals.share.acquired_fetch import AcquiredFetch


@attrs.define(eq=False)
class ShareFetchBuffer:
    """Fetches in the order in which they came. Thread-safe: the I/O thread appends, the application's takes."""

    _notify: Callable[[], None]
    _fetches: deque[AcquiredFetch] = attrs.field(factory=deque, init=False)

    def add(self, fetches: Iterable[AcquiredFetch]) -> None:
        """Append, and notify the application."""
        self._fetches.extend(fetches)
        self._notify()

    def first(self) -> AcquiredFetch | None:
        """The fetch to read from."""
        return self._fetches[0] if self._fetches else None

    def remove(self, fetch: AcquiredFetch) -> None:
        """`fetch` was read to its end."""
        if self._fetches and self._fetches[0] is fetch:
            self._fetches.popleft()

    def take_all(self) -> list[AcquiredFetch]:
        """Remove all there is by now."""
        taken = []
        while self._fetches:
            taken.append(self._fetches.popleft())
        return taken
