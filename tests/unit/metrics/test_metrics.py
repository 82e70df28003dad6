from __future__ import annotations

import math

from harness.mock_time import MockTime
from kclient.metrics import Avg, Max, Metrics, Rate, Total


def measured(metrics: Metrics) -> dict[str, float]:
    return {name.name: value for name, value in metrics.snapshot().items()}


def test_avg_max_rate_and_total_of_one_sensor() -> None:
    time = MockTime()
    metrics = Metrics(time, "g", {"client-id": "c"}, window_ms=1000, samples=2)
    sensor = metrics.sensor("x", "things", Avg, Max, Rate, Total)
    sensor.record(10)
    sensor.record(30, events=3)
    time.advance(500)
    assert measured(metrics) == {"x-avg": 10, "x-max": 30, "x-rate": 40, "x-total": 40}


def test_old_windows_fall_out_but_not_of_the_total() -> None:
    time = MockTime()
    metrics = Metrics(time, "g", {}, window_ms=1000, samples=2)
    sensor = metrics.sensor("x", "things", Avg, Max, Rate, Total)
    sensor.record(100)
    time.advance(1000)
    sensor.record(2)
    assert measured(metrics)["x-max"] == 100
    time.advance(1000)
    assert measured(metrics)["x-max"] == 2
    time.advance(1000)
    values = measured(metrics)
    assert math.isnan(values["x-avg"])
    assert math.isnan(values["x-max"])
    assert values["x-rate"] == 0
    assert values["x-total"] == 102


def test_a_gauge_is_asked_when_read() -> None:
    level = [1.0]
    metrics = Metrics(MockTime(), "g", {})
    metrics.gauge("level", "How full", lambda: level[0])
    level[0] = 7.0
    assert measured(metrics) == {"level": 7.0}
