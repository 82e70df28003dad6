"""RequestManager: what the parts of the consumer on the I/O thread have in common."""

from __future__ import annotations

from typing import Protocol


class RequestManager(Protocol):
    """A part of the consumer that gets a turn in every round of the I/O thread's loop."""

    def poll(self, now_ms: int) -> int:
        """Do and send what is due; returns after how many ms it wants the next turn at the latest."""
