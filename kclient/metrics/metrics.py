"""Metrics: all groups of metrics of one client."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from kclient.metrics.measurement import Measurement
from kclient.metrics.metric_group import MetricGroup, SensorSettings, Tags
from kclient.metrics.metric_values import MetricValues
from kclient.utils.time import Time


class Metrics(MetricGroup):
    """The metrics of one client: a group that is there as long as the client, and others that come and go.

    Thread-safe. `window_ms` and `samples` are metrics.sample.window.ms and metrics.num.samples.
    """

    __slots__ = ("_groups",)

    def __init__(
        self, time: Time, group: str, tags: Mapping[str, str], *, window_ms: int = 30_000, samples: int = 2
    ) -> None:
        # Reentrant: a signal handler or a __del__ that interrupts its holder may need it.
        super().__init__(SensorSettings(time, window_ms, samples), threading.RLock(), group, tags)
        self._groups: dict[tuple[str, Tags], MetricGroup] = {(group, self.tags): self}

    def in_group(self, group: str, tags: Mapping[str, str] | None = None) -> MetricGroup:
        """The metrics of `group` whose tags are those of the client and `tags`; made when they are first wanted."""
        made = MetricGroup(self._settings, self.lock, group, {**dict(self.tags), **(tags or {})})
        with self.lock:
            return self._groups.setdefault((group, made.tags), made)

    @property
    def kept_ms(self) -> int:
        """Time for which sensors look back."""
        return self._settings.window_ms * self._settings.samples

    def remove(self, group: MetricGroup) -> None:
        """Forget the metrics of `group`: their node, topic or partition is gone. They may be gone already."""
        with self.lock:
            if self._groups.get((group.group, group.tags)) is group:
                del self._groups[group.group, group.tags]

    def collect(self) -> list[Measurement]:
        """Return every metric of every group with its value now."""
        with self.lock:
            groups = list(self._groups.values())
            sensors = [sensor for group in groups for sensor in group.sensors]
            gauges = [gauge for group in groups for gauge in group.gauges.values()]
        measurements = [measurement for sensor in sensors for measurement in sensor.measure()]
        measurements += (Measurement(gauge.name, gauge.measure(), gauge.cumulative) for gauge in gauges)
        return measurements

    def snapshot(self) -> MetricValues:
        """Return every metric's value now, by name."""
        return MetricValues.of(self.collect())
