"""The windows over which rates are held against quotas, and the delay that brings a rate down to one."""

from __future__ import annotations

import attrs

from kclient.metrics.stats import Rate

MOST_MS = (1 << 31) - 1  # that an answer can say


@attrs.frozen
class QuotaWindows:
    """A number of windows, the last of which is under way, and their length. Immutable."""

    count: int
    window_ms: int

    def rate(self) -> Rate:
        """Return a rate over these windows."""
        return Rate(self.window_ms, self.count)

    def most(self, limit: float) -> float:
        """Return the most that can be recorded at once after a silence without exceeding `limit` a second."""
        return limit * (self.count - 1) * self.window_ms / 1000


def throttle_ms(rate: Rate, limit: float, now_ms: int, most_ms: int = MOST_MS) -> int:
    """Return the time without any more that would bring `rate` down to `limit` a second, at most `most_ms`."""
    observed = rate.measure(now_ms)
    if observed <= limit:
        return 0
    if limit <= 0:
        return most_ms
    # Over W + X instead of W it would be the limit: X = (observed - limit) / limit * W.
    return min(round(min((observed - limit) / limit * rate.elapsed_ms(now_ms), MOST_MS)), most_ms)
