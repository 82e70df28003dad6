"""Metrics of a client, under the names that Java's client gives them."""

from __future__ import annotations

from kclient.metrics.kafka_metric import KafkaMetric
from kclient.metrics.measurement import Measurement
from kclient.metrics.metric_group import MetricGroup
from kclient.metrics.metric_name import MetricName
from kclient.metrics.metric_values import MetricValues
from kclient.metrics.metrics import Metrics
from kclient.metrics.sensor import Sensor
from kclient.metrics.stats import Avg, Max, Min, Rate, RatePerHour, Ratio, Total

__all__ = [
    "Avg",
    "KafkaMetric",
    "Max",
    "Measurement",
    "MetricGroup",
    "MetricName",
    "MetricValues",
    "Metrics",
    "Min",
    "Rate",
    "RatePerHour",
    "Ratio",
    "Sensor",
    "Total",
]
