"""Histogram: how times are distributed, in buckets of fixed number."""

from __future__ import annotations

_BUCKETS = 128  # enough for any time: of 2**63 microseconds the square has 126 bits


class Histogram:
    """Times in microseconds: all of them counted and summed, the last few minutes in buckets.

    Two buckets to an octave, so a percentile is off by a fifth at most. `record` is for one thread, everything else for
    any.
    """

    __slots__ = ("_before", "_max", "_max_before", "_recent", "count", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = 0
        """The sum of all times."""
        self._recent = [0] * _BUCKETS
        self._before = [0] * _BUCKETS
        self._max = self._max_before = 0

    def record(self, time_us: int) -> None:
        """Count one time, 0 or more."""
        self.count += 1
        self.total += time_us
        self._recent[(time_us * time_us).bit_length()] += 1
        if time_us > self._max:  # noqa: PLR1730 - a call of max() costs as much as all the rest
            self._max = time_us

    def rotate(self) -> None:
        """Begin a window: buckets and maximum are of this one and the one before."""
        self._before, self._recent = self._recent, [0] * _BUCKETS
        self._max_before, self._max = self._max, 0

    def take_in(self, other: Histogram) -> None:
        """Count and sum the times of another one as well, whose last few minutes are left out."""
        self.count += other.count
        self.total += other.total

    def recent(self) -> Recent:
        """Return what the windows have now."""
        counts = [one + other for one, other in zip(self._before, self._recent, strict=True)]
        return Recent(counts, max(self._max, self._max_before))


class Recent:
    """Times of the last minutes, perhaps of several histograms together. Not thread-safe."""

    __slots__ = ("_counts", "maximum")

    def __init__(self, counts: list[int] | None = None, maximum: int = 0) -> None:
        self._counts = [0] * _BUCKETS if counts is None else counts
        self.maximum = maximum
        """The longest, exactly."""

    def add(self, other: Recent) -> None:
        """Take in the times of another one."""
        self._counts = [mine + more for mine, more in zip(self._counts, other._counts, strict=True)]
        self.maximum = max(self.maximum, other.maximum)

    def percentile(self, share: float) -> float:
        """Return the time below which `share` (0 to 1) of all are; NaN if there are none."""
        total = sum(self._counts)
        if total == 0:
            return float("nan")
        wanted = share * total
        seen = 0
        for bucket, count in enumerate(self._counts):
            if count and seen + count >= wanted:
                low, high = _bounds(bucket)
                return min(low + (high - low) * (wanted - seen) / count, float(self.maximum))
            seen += count
        return float(self.maximum)


def _bounds(bucket: int) -> tuple[float, float]:
    """The times whose square has so many bits."""
    return (0.0, 0.0) if bucket == 0 else (2 ** ((bucket - 1) / 2), 2 ** (bucket / 2))
