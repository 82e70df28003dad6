"""MetricGroup: its metrics have its name and tags, and gauges say whether they only grow."""

from __future__ import annotations

import threading

from harness.mock_time import MockTime
from kclient.metrics import MetricGroup, Total
from kclient.metrics.metric_group import SensorSettings


def test_metrics_of_a_group_bear_its_name_and_its_sorted_tags() -> None:
    group = MetricGroup(SensorSettings(MockTime(), 1000, 2), threading.RLock(), "g", {"topic": "t", "a": "b"})
    group.sensor("x", "things", Total)
    group.gauge("y-total", "How many", lambda: 3, cumulative=True)
    group.gauge("z", "How full", lambda: 2)
    tags = (("a", "b"), ("topic", "t"))
    (sensor,) = group.sensors
    (measured,) = sensor.measure()
    assert (measured.name.group, measured.name.name, measured.name.tags) == ("g", "x-total", tags)
    assert [(gauge.name.name, gauge.name.tags, gauge.cumulative) for gauge in group.gauges.values()] == [
        ("y-total", tags, True),
        ("z", tags, False),
    ]
