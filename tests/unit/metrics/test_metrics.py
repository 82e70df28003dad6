from __future__ import annotations

import math

import pytest

from harness.mock_time import MockTime
from kclient.metrics import Avg, Max, Metrics, Rate, RatePerHour, Ratio, Total


def measured(metrics: Metrics) -> dict[str, float]:
    return {name.name: value for name, value in metrics.snapshot().items()}


def test_avg_max_rate_and_total_of_one_sensor() -> None:
    time = MockTime()
    metrics = Metrics(time, "g", {"client-id": "c"}, window_ms=1000, samples=2)
    sensor = metrics.sensor("x", "things", Avg, Max, Rate, Total)
    sensor.record(10)
    sensor.record(30, events=3)
    time.advance(500)
    assert measured(metrics) == {"x-avg": 10, "x-max": 30, "x-rate": pytest.approx(40 / 1.5), "x-total": 40}


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


def test_a_client_has_metrics_of_several_groups_and_tags_and_all_are_collected() -> None:
    metrics = Metrics(MockTime(), "producer-metrics", {"client-id": "c"})
    metrics.sensor("send", "things sent", Rate, Total).record(3)
    node = metrics.in_group("producer-node-metrics", {"node-id": "node-1"})
    node.sensor("send", "things sent", Total).record(2)
    node.gauge("level", "How full", lambda: 7)
    metrics.gauge("done-total", "How many were done", lambda: 5, cumulative=True)
    found = {(m.name.group, m.name.name): (m.name.tags, m.value, m.cumulative) for m in metrics.collect()}
    client, of_node = (("client-id", "c"),), (("client-id", "c"), ("node-id", "node-1"))
    assert found == {
        ("producer-metrics", "send-rate"): (client, 0.1, False),
        ("producer-metrics", "send-total"): (client, 3, True),
        ("producer-metrics", "done-total"): (client, 5, True),
        ("producer-node-metrics", "send-total"): (of_node, 2, True),
        ("producer-node-metrics", "level"): (of_node, 7, False),
    }
    assert metrics.snapshot()["send-total"] == 3


def test_the_same_group_and_tags_are_the_same_metrics_until_they_are_removed() -> None:
    metrics = Metrics(MockTime(), "g", {})
    topic = metrics.in_group("t", {"topic": "a"})
    topic.sensor("x", "things", Total).record()
    assert metrics.in_group("t", {"topic": "a"}) is topic
    metrics.remove(topic)
    metrics.remove(topic)
    assert measured(metrics) == {}
    successor = metrics.in_group("t", {"topic": "a"})
    assert successor is not topic
    metrics.remove(topic)
    assert metrics.in_group("t", {"topic": "a"}) is successor


def test_a_ratio_is_the_part_of_the_time_and_what_is_rare_is_told_by_the_hour() -> None:
    time = MockTime()
    metrics = Metrics(time, "g", {}, window_ms=1000, samples=2)
    sensor = metrics.sensor("x", "that it works", Ratio, RatePerHour)
    sensor.record(0.25)
    time.advance(500)
    assert measured(metrics) == {"x-ratio": pytest.approx(1 / 6), "x-rate-per-hour": 600}
