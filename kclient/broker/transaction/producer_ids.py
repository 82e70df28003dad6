"""Identifiers for idempotent producers, none of which is ever given out twice."""

from __future__ import annotations

import threading
from collections.abc import Callable


class ProducerIds:
    """Gives out producer ids. Thread-safe.

    They come in blocks: the metadata log has a block before its first id is given out, and a restart takes the next
    one, so that ids are lost by a crash but never repeated.
    """

    def __init__(self, allocate: Callable[[], range]) -> None:
        """`allocate` gives a block that nobody has had."""
        self._allocate = allocate
        self._lock = threading.Lock()
        self._block = range(0)

    @property
    def exhausted(self) -> bool:
        """True if the next id needs a new block."""
        return not self._block

    def next(self) -> int:
        """An id that nobody has had. Raises KafkaStorageError."""
        with self._lock:
            block = self._block or self._allocate()
            self._block = block[1:]
            return block[0]
