"""PushedMetrics: what all clients offer of telemetry."""

from __future__ import annotations

import abc

from kclient.client.telemetry.client_telemetry import ClientTelemetry
from kclient.common.uuid import Uuid
from kclient.errors import IllegalStateError
from kclient.metrics import KafkaMetric, Measurement
from kclient.utils import steps
from kclient.utils.time import SYSTEM_TIME

_DEFAULT_TIMEOUT_MS = 30_000


class PushedMetrics(abc.ABC):
    """The calls about metrics that brokers may ask a client for (KIP-714, KIP-1076). Thread-safe."""

    @property
    @abc.abstractmethod
    def _telemetry(self) -> ClientTelemetry:
        """The client's telemetry. Raises ForkedClientError in a forked child."""

    def client_instance_id(self, *, timeout_ms: int | None = None) -> Uuid:
        """Return the id by which brokers know this client's metrics; waits for it at most `timeout_ms` (30,000).

        Raises IllegalStateError if the client pushes no metrics (`enable.metrics.push`), KafkaTimeoutError that says
        why there is no id, such as that nobody receives metrics on the brokers, ValueError for a negative time.
        """
        telemetry = self._telemetry
        timeout_ms = _DEFAULT_TIMEOUT_MS if timeout_ms is None else timeout_ms
        if timeout_ms < 0:
            raise ValueError(f"timeout_ms must be 0 or more, not {timeout_ms}")
        if not telemetry.enabled:
            raise IllegalStateError(
                "The client pushes no metrics, so no broker gives it an id (enable.metrics.push)"
            )
        return steps.run(telemetry.client_instance_id(SYSTEM_TIME.timer(timeout_ms)), SYSTEM_TIME)

    def measurements(self) -> list[Measurement]:
        """Return every metric with its value now, the application's own included."""
        return self._telemetry.measurements()

    def register_metric_for_subscription(self, metric: KafkaMetric) -> None:
        """Push a metric of the application, too, where brokers ask for it: by its name with org.apache.kafka before it.

        One of the same name and tags is replaced; one that the client itself has stays the client's. Raises TypeError
        for what is no KafkaMetric.
        """
        self._telemetry.register(_checked(metric))

    def unregister_metric_from_subscription(self, metric: KafkaMetric) -> None:
        """Push the metric no more. Raises TypeError for what is no KafkaMetric."""
        self._telemetry.unregister(_checked(metric))


def _checked(metric: object) -> KafkaMetric:
    if not isinstance(metric, KafkaMetric):
        raise TypeError(f"A metric has to be a KafkaMetric, not {type(metric).__name__}")
    return metric
