"""ControllerEvents: the thread on which requests change the metadata, one after the other."""

from __future__ import annotations

import queue
from collections.abc import Callable

from kclient.utils.threads import KafkaThread


class ControllerEvents:
    """Events in the order in which they came, on one thread. Thread-safe.

    Changes wait here for each other, so that no request handler does. There are no more events than connections, as
    each has one request at a time.
    """

    def __init__(self, node_id: int) -> None:
        self._events: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = KafkaThread(f"controller-{node_id}-event-handler", self._run)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def put(self, event: Callable[[], None]) -> None:
        """Have `event`, which never raises, called after all that were put before."""
        self._events.put(event)

    def shutdown(self) -> None:
        """Finish what was put before, then end the thread. Idempotent."""
        self._events.put(None)
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while (event := self._events.get()) is not None:
            event()
