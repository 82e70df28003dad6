from __future__ import annotations

import threading

import pytest

from kclient.client.telemetry.client_telemetry import ClientTelemetry
from kclient.common.uuid import Uuid
from kclient.errors import KafkaTimeoutError
from kclient.metrics import KafkaMetric, Measurement, MetricName
from kclient.utils import steps
from kclient.utils.time import SYSTEM_TIME

OWN = MetricName("record-send-rate", "producer-metrics")
ORDERS = MetricName("orders", "shop")


@pytest.fixture
def telemetry() -> ClientTelemetry:
    return ClientTelemetry(lambda: [Measurement(OWN, 1.0, cumulative=False)], dict)


def instance_id(telemetry: ClientTelemetry, timeout_ms: int) -> Uuid:
    return steps.run(telemetry.client_instance_id(SYSTEM_TIME.timer(timeout_ms)), SYSTEM_TIME)


def test_metrics_of_the_application_come_with_the_clients_own(telemetry: ClientTelemetry) -> None:
    orders = KafkaMetric(ORDERS, lambda: 7, cumulative=True)

    telemetry.register(orders)
    assert telemetry.measurements() == [
        Measurement(OWN, 1.0, cumulative=False),
        Measurement(ORDERS, 7.0, cumulative=True),
    ]
    telemetry.unregister(orders)
    assert [each.name for each in telemetry.measurements()] == [OWN]
    telemetry.unregister(orders)


def test_a_metric_of_the_application_never_stands_for_one_of_the_client(telemetry: ClientTelemetry) -> None:
    telemetry.register(KafkaMetric(OWN, lambda: 99))

    assert telemetry.measurements() == [Measurement(OWN, 1.0, cumulative=False)]


def test_a_function_that_raises_gives_no_value(telemetry: ClientTelemetry) -> None:
    telemetry.register(KafkaMetric(ORDERS, lambda: 1 / 0))

    assert str(telemetry.measurements()[1].value) == "nan"


def test_the_id_is_waited_for(telemetry: ClientTelemetry) -> None:
    expected = Uuid.random()
    threading.Timer(0.02, telemetry.identified, [expected]).start()

    assert instance_id(telemetry, 30_000) == expected
    assert instance_id(telemetry, 0) == expected


def test_an_id_that_does_not_come_says_why(telemetry: ClientTelemetry) -> None:
    with pytest.raises(KafkaTimeoutError, match="within 0 ms: no broker was asked yet"):
        instance_id(telemetry, 0)
    telemetry.refused("nobody receives metrics")
    with pytest.raises(KafkaTimeoutError, match="within 1 ms: nobody receives metrics"):
        instance_id(telemetry, 1)
