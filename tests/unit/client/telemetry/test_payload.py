from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, MetricsData

from kclient.client.telemetry.payload import PayloadEncoder, telemetry_name
from kclient.metrics import Measurement, MetricName

RATE = MetricName("record-send-rate", "producer-metrics", (("client-id", "c"),))
TOTAL = MetricName("record-send-total", "producer-topic-metrics", (("client-id", "c"), ("topic", "orders")))
STARTED_NS, NOW_NS = 5_000_000_000, 1_763_800_000_000_000_000


def decoded(*measurements: Measurement, encoder: PayloadEncoder | None = None, **options: Any) -> Any:
    """The payload as OpenTelemetry's own classes read it."""
    encoder = encoder or PayloadEncoder(STARTED_NS)
    options = {"labels": {}, "now_ns": NOW_NS, "delta": False, **options}
    return MetricsData.FromString(encoder.encode(measurements, **options))


def metrics(data: Any) -> list[Any]:
    (resource,) = data.resource_metrics
    (scope,) = resource.scope_metrics
    return list(scope.metrics)


def attributes(holder: Any) -> dict[str, str]:
    return {each.key: each.value.string_value for each in holder.attributes}


@pytest.mark.parametrize(
    ("name", "telemetry"),
    [
        (RATE, "org.apache.kafka.producer.record.send.rate"),
        (TOTAL, "org.apache.kafka.producer.topic.record.send.total"),
        (
            MetricName("records-lag-max", "consumer-fetch-manager-metrics"),
            "org.apache.kafka.consumer.fetch.manager.records.lag.max",
        ),
        (MetricName("orders", "shop"), "org.apache.kafka.shop.orders"),
    ],
)
def test_names_in_telemetry_are_made_of_group_and_name(name: MetricName, telemetry: str) -> None:
    assert telemetry_name(name) == telemetry


def test_a_value_as_it_is_now_is_a_gauge() -> None:
    (metric,) = metrics(decoded(Measurement(RATE, 12.5, cumulative=False)))

    (point,) = metric.gauge.data_points
    assert metric.name == "org.apache.kafka.producer.record.send.rate"
    assert (point.as_double, point.time_unix_nano, point.start_time_unix_nano) == (12.5, NOW_NS, 0)


def test_a_sum_says_since_when_it_has_grown() -> None:
    (metric,) = metrics(decoded(Measurement(TOTAL, 300.0, cumulative=True)))

    (point,) = metric.sum.data_points
    assert metric.sum.is_monotonic
    assert metric.sum.aggregation_temporality == AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
    assert (point.as_double, point.time_unix_nano, point.start_time_unix_nano) == (300.0, NOW_NS, STARTED_NS)


def test_with_delta_temporality_a_sum_says_what_was_added_since_the_last_time() -> None:
    encoder = PayloadEncoder(STARTED_NS)
    found = []
    for at_ns, value in ((NOW_NS, 300.0), (NOW_NS + 10, 450.0), (NOW_NS + 20, 450.0)):
        total = Measurement(TOTAL, value, cumulative=True)
        (metric,) = metrics(decoded(total, encoder=encoder, delta=True, now_ns=at_ns))
        assert metric.sum.aggregation_temporality == AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
        (point,) = metric.sum.data_points
        found.append((point.as_double, point.start_time_unix_nano, point.time_unix_nano))

    assert found == [
        (300.0, STARTED_NS, NOW_NS),
        (150.0, NOW_NS, NOW_NS + 10),
        (0.0, NOW_NS + 10, NOW_NS + 20),
    ]


def test_sums_that_are_gone_are_not_remembered() -> None:
    encoder = PayloadEncoder(STARTED_NS)
    total = Measurement(TOTAL, 300.0, cumulative=True)
    rate = Measurement(RATE, 1.0, cumulative=False)
    for measurement in (total, rate):
        decoded(measurement, encoder=encoder, delta=True)

    (metric,) = metrics(decoded(total, encoder=encoder, delta=True))

    assert metric.sum.data_points[0].as_double == 300.0


def test_tags_are_attributes_without_the_clients_id_and_labels_are_the_resources() -> None:
    data = decoded(Measurement(TOTAL, 1.0, cumulative=True), labels={"group_id": "g", "client_rack": "räck"})

    (metric,) = metrics(data)
    assert attributes(metric.sum.data_points[0]) == {"topic": "orders"}
    assert attributes(data.resource_metrics[0].resource) == {"group_id": "g", "client_rack": "räck"}


def test_dashes_in_tags_become_underscores() -> None:
    name = MetricName("request-rate", "producer-node-metrics", (("node-id", "node-1"),))

    (metric,) = metrics(decoded(Measurement(name, 1.0, cumulative=False)))

    assert attributes(metric.gauge.data_points[0]) == {"node_id": "node-1"}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_metrics_without_a_value_are_left_out(value: float) -> None:
    rate = Measurement(RATE, value, cumulative=False)

    assert PayloadEncoder(STARTED_NS).encode([rate], {}, NOW_NS, delta=False) == b""
    assert len(metrics(decoded(rate, Measurement(TOTAL, 1.0, cumulative=True)))) == 1


def test_a_payload_of_many_metrics_is_read_whole() -> None:
    names = [MetricName(f"m{i}-" + "x" * (i % 300), "producer-metrics") for i in range(1000)]

    found = metrics(decoded(*(Measurement(name, float(i), cumulative=False) for i, name in enumerate(names))))

    assert [metric.gauge.data_points[0].as_double for metric in found] == list(map(float, range(1000)))
    assert [metric.name for metric in found] == [telemetry_name(name) for name in names]
