"""Settled: acknowledgements whose outcome is known, for the application's next call."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import attrs

from kclient.consumer.internals.share.acknowledgements import Acknowledgements
from kclient.errors import KafkaError


@attrs.define(eq=False)
class Settled:
    """Acknowledgements that brokers have answered, in order. Thread-safe."""

    _notify: Callable[[], None]
    _record: Callable[[Acknowledgements], None]
    _waiting: deque[Acknowledgements] = attrs.field(factory=deque, init=False)
    wanted: bool = attrs.field(default=False, init=False)
    """True if the application has a callback for them; set by its thread."""

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def settle(self, acknowledgements: Acknowledgements, error: KafkaError | None) -> None:
        """The outcome is known. For the I/O thread."""
        acknowledgements.error = error
        self._record(acknowledgements)
        if acknowledgements.request is not None:
            acknowledgements.request.settle(acknowledgements.partition, error)
        if self.wanted or acknowledgements.renews:
            self._waiting.append(acknowledgements)
            self._notify()

    def take(self) -> Acknowledgements | None:
        """The next of them; for the application's thread."""
        return self._waiting.popleft() if self._waiting else None
