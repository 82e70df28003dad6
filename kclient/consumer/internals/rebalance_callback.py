"""Changes of the assignment, which the I/O thread decides and the application's thread carries out."""

from __future__ import annotations

import threading
from enum import Enum

from kclient.common.topic_partition import TopicPartition
from kclient.consumer.internals.coordinator.generation import Generation


class RebalanceKind(Enum):
    """The change that happens to the partitions of a `RebalanceCallback`."""

    REVOKED = "revoked"
    LOST = "lost"
    ASSIGNED = "assigned"


class RebalanceCallback:
    """A change of the assignment that the application's thread has to carry out before the membership goes on.

    Thread-safe: either it is started or it is cancelled, never both.
    """

    __slots__ = ("_cancelled", "_lock", "_started", "generation", "kind", "partitions")

    def __init__(
        self, kind: RebalanceKind, partitions: frozenset[TopicPartition], generation: Generation
    ) -> None:
        self.kind = kind
        self.partitions = partitions
        self.generation = generation
        """The member's place in the group when the change was decided."""
        self._lock = threading.Lock()
        self._started = self._cancelled = False

    def start(self) -> bool:
        """Begin to carry it out, or go on with it; False if it is cancelled."""
        with self._lock:
            self._started = not self._cancelled
            return self._started

    def cancel(self) -> bool:
        """Make it not happen; False if it has begun."""
        with self._lock:
            self._cancelled = not self._started
            return self._cancelled

    def __repr__(self) -> str:
        return f"RebalanceCallback({self.kind.value}, {sorted(self.partitions)})"
