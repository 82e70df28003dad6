"""Exponential backoff with jitter (KIP-580)."""

from __future__ import annotations

import random

import attrs


@attrs.frozen
class ExponentialBackoff:
    """`initial_ms * multiplier ** attempts`, at most `max_ms`, spread by +-`jitter` of itself. Thread-safe."""

    initial_ms: int
    max_ms: int
    multiplier: float = 2.0
    jitter: float = 0.2

    def backoff_ms(self, attempts: int) -> int:
        """The wait before the next try after `attempts` failed ones beyond the first (0 gives about `initial_ms`)."""
        if self.initial_ms <= 0:
            return 0
        # Cap the exponent before raising: a counter of failures that runs for days must not overflow a float.
        term = self.initial_ms * self.multiplier ** min(max(attempts, 0), 64)
        spread = random.uniform(1.0 - self.jitter, 1.0 + self.jitter)
        return int(min(term * spread, self.max_ms))
