from __future__ import annotations

from typing import Any

import pytest

from kclient.client.telemetry.client_telemetry import ClientTelemetry
from kclient.client.telemetry.pushed_metrics import PushedMetrics
from kclient.common.uuid import Uuid
from kclient.errors import IllegalStateError, KafkaTimeoutError
from kclient.metrics import KafkaMetric, MetricName


class Face(PushedMetrics):
    def __init__(self, *, enabled: bool = True) -> None:
        self.telemetry = ClientTelemetry(list, dict, enabled=enabled)

    @property
    def _telemetry(self) -> ClientTelemetry:
        return self.telemetry


def test_the_id_is_given_as_soon_as_it_is_known() -> None:
    face = Face()
    with pytest.raises(KafkaTimeoutError):
        face.client_instance_id(timeout_ms=0)
    known = Uuid.random()
    face.telemetry.identified(known)
    assert face.client_instance_id(timeout_ms=0) == known


def test_a_client_that_pushes_nothing_says_which_setting_makes_it() -> None:
    with pytest.raises(IllegalStateError, match=r"enable\.metrics\.push"):
        Face(enabled=False).client_instance_id()


def test_a_negative_time_is_refused() -> None:
    with pytest.raises(ValueError, match="timeout_ms must be 0 or more, not -1"):
        Face().client_instance_id(timeout_ms=-1)


def test_metrics_of_the_application_are_taken_and_given_up() -> None:
    face = Face()
    orders = KafkaMetric(MetricName("orders", "shop"), lambda: 1)
    face.register_metric_for_subscription(orders)
    assert [each.name.name for each in face.measurements()] == ["orders"]
    face.unregister_metric_from_subscription(orders)
    assert face.telemetry.measurements() == []


@pytest.mark.parametrize("wrong", [None, "orders", MetricName("orders", "shop")])
def test_what_is_no_metric_is_refused(wrong: Any) -> None:
    for call in (Face().register_metric_for_subscription, Face().unregister_metric_from_subscription):
        with pytest.raises(TypeError, match="has to be a KafkaMetric"):
            call(wrong)
