"""Metrics: the sensors and gauges of one client."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from kclient.metrics.measurement import Measurement
from kclient.metrics.metric_name import MetricName
from kclient.metrics.metric_values import MetricValues
from kclient.metrics.sensor import Sensor
from kclient.metrics.stats import Stat
from kclient.utils.time import Time


class Metrics:
    """All metrics of one client. Thread-safe.

    `window_ms` and `samples` are metrics.sample.window.ms and metrics.num.samples.
    """

    __slots__ = ("_gauges", "_lock", "_samples", "_sensors", "_time", "_window_ms", "group", "tags")

    def __init__(
        self, time: Time, group: str, tags: Mapping[str, str], *, window_ms: int = 30_000, samples: int = 2
    ) -> None:
        self._time = time
        self._window_ms = window_ms
        self._samples = samples
        # Reentrant: a signal handler or a __del__ that interrupts its holder may need it.
        self._lock = threading.RLock()
        self._sensors: list[Sensor] = []
        self._gauges: dict[MetricName, Callable[[], float]] = {}
        self.group = group
        self.tags = tuple(sorted(tags.items()))

    def name(self, name: str, description: str = "") -> MetricName:
        """The full name of this client's metric `name`."""
        return MetricName(name, self.group, self.tags, description)

    def sensor(self, name: str, description: str, *stats: type[Stat]) -> Sensor:
        """A sensor that keeps `stats` under `name` and the suffix of each, such as `fetch-size-avg`."""
        sensor = Sensor(self._time)
        for stat in stats:
            full_name = self.name(f"{name}-{stat.suffix}", stat.wording.format(description))
            sensor.add(full_name, stat(self._window_ms, self._samples))
        with self._lock:
            self._sensors.append(sensor)
        return sensor

    def gauge(self, name: str, description: str, measure: Callable[[], float]) -> None:
        """A metric that is asked for when it is read."""
        with self._lock:
            self._gauges[self.name(name, description)] = measure

    def collect(self) -> list[Measurement]:
        """Return every metric with its value now."""
        with self._lock:
            sensors, gauges = list(self._sensors), dict(self._gauges)
        measurements = [measurement for sensor in sensors for measurement in sensor.measure()]
        measurements += (Measurement(name, measure(), cumulative=False) for name, measure in gauges.items())
        return measurements

    def snapshot(self) -> MetricValues:
        """Return every metric's value now, by name."""
        return MetricValues.of(self.collect())
