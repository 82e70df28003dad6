from __future__ import annotations

import math

import pytest

from kclient.metrics import KafkaMetric, Measurement, MetricName

ORDERS = MetricName("orders", "shop")


@pytest.mark.parametrize("cumulative", [True, False])
def test_the_function_is_asked_whenever_the_metric_is_measured(cumulative: bool) -> None:
    values = iter([1, 2.5])
    metric = KafkaMetric(ORDERS, lambda: next(values), cumulative)

    assert metric.measure() == Measurement(ORDERS, 1.0, cumulative)
    assert metric.measure() == Measurement(ORDERS, 2.5, cumulative)


@pytest.mark.parametrize("function", [lambda: 1 / 0, lambda: "seven", lambda: None])
def test_what_is_no_number_is_no_value(function: object) -> None:
    assert math.isnan(KafkaMetric(ORDERS, function).measure().value)  # type: ignore[arg-type]
