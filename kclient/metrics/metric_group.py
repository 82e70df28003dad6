"""MetricGroup: the sensors and gauges that have their group and tags in common."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

import attrs

from kclient.metrics.metric_name import MetricName
from kclient.metrics.sensor import Sensor
from kclient.metrics.stats import Stat
from kclient.utils.time import Time

Tags = tuple[tuple[str, str], ...]


@attrs.define
class Gauge:
    """A metric that is asked for when it is read."""

    name: MetricName
    measure: Callable[[], float]
    cumulative: bool


@attrs.frozen
class SensorSettings:
    """Settings of all sensors of one client: the clock, and the windows of their stats."""

    time: Time
    window_ms: int
    samples: int


class MetricGroup:
    """Some metrics of a client, such as those of one topic. Thread-safe.

    `sensors` and `gauges` are for `Metrics`, which takes both under `lock`.
    """

    __slots__ = ("_settings", "gauges", "group", "lock", "sensors", "tags")

    def __init__(
        self, settings: SensorSettings, lock: threading.RLock, group: str, tags: Mapping[str, str]
    ) -> None:
        self._settings = settings
        self.lock = lock
        self.sensors: list[Sensor] = []
        self.gauges: dict[MetricName, Gauge] = {}
        self.group = group
        self.tags: Tags = tuple(sorted(tags.items()))

    def name(self, name: str, description: str = "") -> MetricName:
        """The full name of the metric `name` of this group."""
        return MetricName(name, self.group, self.tags, description)

    def sensor(self, name: str, description: str, *stats: type[Stat]) -> Sensor:
        """A sensor that keeps `stats` under `name` and the suffix of each, such as `fetch-size-avg`."""
        settings = self._settings
        sensor = Sensor(settings.time)
        for stat in stats:
            full_name = self.name(f"{name}-{stat.suffix}", stat.wording.format(description))
            sensor.add(full_name, stat(settings.window_ms, settings.samples))
        with self.lock:
            self.sensors.append(sensor)
        return sensor

    def gauge(
        self, name: str, description: str, measure: Callable[[], float], *, cumulative: bool = False
    ) -> None:
        """A metric that is asked for when it is read; a `cumulative` one is a sum that only grows."""
        full_name = self.name(name, description)
        with self.lock:
            self.gauges[full_name] = Gauge(full_name, measure, cumulative)
