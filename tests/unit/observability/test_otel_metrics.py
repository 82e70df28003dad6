"""Metrics of a client as instruments, collected by the SDK of OpenTelemetry."""

from __future__ import annotations

import importlib
import math
import sys
from typing import Any

import attrs
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from kclient.metrics import Measurement, MetricName
from kclient.observability import otel_metrics
from kclient.observability.otel_metrics import KafkaInstruments

CLIENT = (("client-id", "c"),)
RATE = MetricName("record-send-rate", "producer-metrics", CLIENT, "The records per second")
TOTAL = MetricName("record-send-total", "producer-metrics", CLIENT, "All records")
OF_TOPIC = MetricName("byte-total", "producer-topic-metrics", (*CLIENT, ("topic", "t")), "All bytes")


@attrs.define(eq=False)
class Client:
    values: list[Measurement]
    asked: int = 0

    def measurements(self) -> list[Measurement]:
        self.asked += 1
        return self.values


class Rig:
    def __init__(self, *values: Measurement) -> None:
        self.client = Client(list(values))
        self.reader = InMemoryMetricReader()
        provider = MeterProvider([self.reader], shutdown_on_exit=False)
        self.instruments = KafkaInstruments(self.client, meter=provider.get_meter("test"))

    def collected(self) -> dict[str, tuple[str, list[tuple[dict[str, Any], float]]]]:
        data = self.reader.get_metrics_data()
        if data is None:
            return {}
        return {
            metric.name: (
                type(metric.data).__name__,
                [(dict(point.attributes), point.value) for point in metric.data.data_points],
            )
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


def test_sums_are_counters_all_others_gauges_and_tags_are_attributes() -> None:
    rig = Rig(Measurement(RATE, 2.5, cumulative=False), Measurement(TOTAL, 7.0, cumulative=True))
    assert rig.collected() == {
        "kafka.producer.record_send_rate": ("Gauge", [({"client-id": "c"}, 2.5)]),
        "kafka.producer.record_send_total": ("Sum", [({"client-id": "c"}, 7.0)]),
    }


def test_a_collection_asks_the_client_once_for_all_instruments() -> None:
    rig = Rig(Measurement(RATE, 2.5, cumulative=False), Measurement(TOTAL, 7.0, cumulative=True))
    rig.instruments._seen_s = -math.inf
    before = rig.client.asked
    rig.collected()
    assert rig.client.asked == before + 1


def test_what_has_no_value_is_left_out() -> None:
    assert Rig(Measurement(RATE, math.nan, cumulative=False)).collected() == {}


def test_names_that_come_later_have_instruments_after_an_update() -> None:
    rig = Rig()
    rig.client.values.append(Measurement(OF_TOPIC, 3, cumulative=True))
    rig.instruments.update()
    rig.instruments.update()
    expected = {"kafka.producer_topic.byte_total": ("Sum", [({"client-id": "c", "topic": "t"}, 3)])}
    assert rig.collected() == expected


def test_after_close_nothing_is_observed() -> None:
    rig = Rig(Measurement(RATE, 2.5, cumulative=False))
    rig.instruments.close()
    assert rig.collected() == {}


def test_several_clients_are_observed_by_the_same_instruments_until_they_are_removed() -> None:
    rig = Rig(Measurement(RATE, 2.5, cumulative=False))
    name = "kafka.producer.record_send_rate"
    other = Client([Measurement(attrs.evolve(RATE, tags=(("client-id", "d"),)), 1.5, cumulative=False)])
    rig.instruments.add(other)
    assert rig.collected()[name] == ("Gauge", [({"client-id": "c"}, 2.5), ({"client-id": "d"}, 1.5)])
    rig.instruments.remove(other)
    assert rig.collected()[name] == ("Gauge", [({"client-id": "c"}, 2.5)])


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.metrics", None)
    with pytest.raises(ImportError, match=r"pip install 'kclient-kafka\[otel\]'"):
        importlib.reload(otel_metrics)
