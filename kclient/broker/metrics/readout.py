"""Readout: measurements under the names that they have in JMX."""

from __future__ import annotations

from collections.abc import Sequence

from kclient.broker.metrics.histogram import Histogram, Recent
from kclient.metrics import Measurement, MetricName

PERCENTILES = (
    ("50thPercentile", 0.5),
    ("95thPercentile", 0.95),
    ("99thPercentile", 0.99),
    ("999thPercentile", 0.999),
)


class Readout:
    """Collects measurements. Used by one thread.

    `kafka.network:type=RequestChannel,name=RequestQueueSize` is `RequestQueueSize` of the group
    `network.RequestChannel`. Where a bean has several attributes the name ends with one: `RequestsPerSec-Count`.
    """

    def __init__(self) -> None:
        self.measurements: list[Measurement] = []

    def gauge(self, group: str, name: str, value: float, description: str = "", **tags: str) -> None:
        """A value as it is now."""
        self._add(group, name, value, description, tags, cumulative=False)

    def counter(self, group: str, name: str, value: float, description: str = "", **tags: str) -> None:
        """A sum that only grows, of which there is `Count` alone."""
        self._add(group, f"{name}-Count", value, description, tags, cumulative=True)

    def total(self, group: str, name: str, value: float, description: str = "", **tags: str) -> None:
        """A sum that only grows, under a name that says so."""
        self._add(group, name, value, description, tags, cumulative=True)

    def times(
        self, group: str, name: str, histograms: Sequence[Histogram], description: str, **tags: str
    ) -> None:
        """Times in ms: how many, their mean and percentiles."""
        recent = Recent()
        for histogram in histograms:
            recent.add(histogram.recent())
        count = sum(histogram.count for histogram in histograms)
        total_us = sum(histogram.total for histogram in histograms)
        self.counter(group, name, count, description, **tags)
        self.gauge(
            group, f"{name}-Mean", total_us / 1000 / count if count else float("nan"), description, **tags
        )
        self.gauge(group, f"{name}-Max", recent.maximum / 1000, description, **tags)
        for suffix, share in PERCENTILES:
            self.gauge(group, f"{name}-{suffix}", recent.percentile(share) / 1000, description, **tags)

    def values(self, group: str, name: str, values: Sequence[float], description: str, **tags: str) -> None:
        """Values that are all known: their mean and percentiles. Nothing if there are none."""
        if not values:
            return
        ordered = sorted(values)
        self.gauge(group, f"{name}-Mean", sum(ordered) / len(ordered), description, **tags)
        self.gauge(group, f"{name}-Max", ordered[-1], description, **tags)
        for suffix, share in PERCENTILES:
            at = min(int(share * len(ordered)), len(ordered) - 1)
            self.gauge(group, f"{name}-{suffix}", ordered[at], description, **tags)

    def _add(
        self, group: str, name: str, value: float, description: str, tags: dict[str, str], *, cumulative: bool
    ) -> None:
        full = MetricName(name, group, tuple(sorted(tags.items())), description)
        self.measurements.append(Measurement(full, float(value), cumulative))
