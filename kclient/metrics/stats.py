"""Statistics of a series of measurements. None of them is thread-safe: their sensor's lock guards them."""

from __future__ import annotations

import abc
from collections import deque
from typing import ClassVar

import attrs


@attrs.define
class _Sample:
    started_ms: int
    value: float
    events: int = 0
    last_ms: int = 0


class Stat(abc.ABC):
    """One number kept up to date by `record`.

    It may be one over the last `samples` windows of `window_ms` each (metrics.num.samples, metrics.sample.window.ms).
    """

    __slots__ = ()
    suffix: ClassVar[str]
    """The end of a metric's name in Java."""
    wording: ClassVar[str]
    """The description of a metric, with a place for what is measured."""
    cumulative: ClassVar[bool] = False
    """True for a sum that only grows."""

    @abc.abstractmethod
    def __init__(self, window_ms: int = 30_000, samples: int = 2) -> None: ...

    @abc.abstractmethod
    def record(self, value: float, now_ms: int, events: int, largest: float) -> None:
        """Take in `value`, the sum over `events` events, the largest of which was `largest`."""

    @abc.abstractmethod
    def measure(self, now_ms: int) -> float:
        """The number now; NaN where there is nothing to tell."""


class Total(Stat):
    """The sum of everything recorded."""

    __slots__ = ("_total",)
    suffix, wording = "total", "The total {}"
    cumulative = True

    def __init__(self, window_ms: int = 30_000, samples: int = 2) -> None:  # noqa: ARG002 - it never forgets
        self._total = 0.0

    def record(self, value: float, now_ms: int, events: int, largest: float) -> None:  # noqa: ARG002 - a sum needs no more
        self._total += value

    def measure(self, now_ms: int) -> float:  # noqa: ARG002
        return self._total


class _Sampled(Stat):
    """A stat over windows. One falls out whole, as in Java: once its last event is as old as all windows are long."""

    __slots__ = ("_samples", "_window", "_window_ms")
    _initial: ClassVar[float] = 0.0

    def __init__(self, window_ms: int = 30_000, samples: int = 2) -> None:
        self._window_ms = window_ms
        self._samples = samples
        self._window: deque[_Sample] = deque()

    def record(self, value: float, now_ms: int, events: int, largest: float) -> None:
        if not self._window or now_ms - self._window[-1].started_ms >= self._window_ms:
            self._window.append(_Sample(now_ms, self._initial))
        sample = self._window[-1]
        sample.value = self._fold(sample.value, value, largest)
        sample.events += events
        sample.last_ms = now_ms
        self._purge(now_ms)

    def _purge(self, now_ms: int) -> None:
        while self._window and now_ms - self._window[0].last_ms >= self._window_ms * self._samples:
            self._window.popleft()

    def _fold(self, old: float, new: float, largest: float) -> float:  # noqa: ARG002 - for Max
        return old + new


class Avg(_Sampled):
    """The mean over the windows; one recorded value may stand for several events."""

    __slots__ = ()
    suffix, wording = "avg", "The average {}"

    def measure(self, now_ms: int) -> float:
        self._purge(now_ms)
        events = sum(sample.events for sample in self._window)
        return sum(sample.value for sample in self._window) / events if events else float("nan")


class Max(_Sampled):
    """The largest value over the windows."""

    __slots__ = ()
    suffix, wording = "max", "The maximum {}"
    _initial = float("-inf")

    def _fold(self, old: float, new: float, largest: float) -> float:  # noqa: ARG002
        return max(old, largest)

    def measure(self, now_ms: int) -> float:
        self._purge(now_ms)
        return max((sample.value for sample in self._window), default=float("nan"))


class Min(_Sampled):
    """The smallest value over the windows."""

    __slots__ = ()
    suffix, wording = "min", "The minimum {}"
    _initial = float("inf")

    def _fold(self, old: float, new: float, largest: float) -> float:  # noqa: ARG002
        return min(old, new)

    def measure(self, now_ms: int) -> float:
        self._purge(now_ms)
        return min((sample.value for sample in self._window), default=float("nan"))


class Rate(_Sampled):
    """The sum of the values per second over the windows."""

    __slots__ = ()
    suffix, wording = "rate", "The {} per second"

    def measure(self, now_ms: int) -> float:
        elapsed_ms = self.elapsed_ms(now_ms)
        return sum(sample.value for sample in self._window) * 1000 / elapsed_ms

    def elapsed_ms(self, now_ms: int) -> int:
        """Return the time over which the rate is measured now."""
        self._purge(now_ms)
        elapsed_ms = now_ms - self._window[0].started_ms if self._window else 0
        # As Java does: a client that has just started is measured as if there had been all windows but one before, else
        # a single first event would look like a huge rate.
        if self._window_ms:
            elapsed_ms += max(self._samples - 1 - elapsed_ms // self._window_ms, 0) * self._window_ms
        return max(elapsed_ms, 1)


class Ratio(Rate):
    """The part of the time that something took, of which seconds are recorded."""

    __slots__ = ()
    suffix, wording = "ratio", "The part of the time {}"


class RatePerHour(Rate):
    """The sum of the values per hour over the windows, for what is rare."""

    __slots__ = ()
    suffix, wording = "rate-per-hour", "The {} per hour"

    def measure(self, now_ms: int) -> float:
        return super().measure(now_ms) * 3600
