"""The metrics of an admin client, under Java's names: those of its connections."""

from __future__ import annotations

from kclient.admin.config import AdminConfig
from kclient.client.network_metrics import NetworkMetrics
from kclient.metrics import Measurement, Metrics, MetricValues
from kclient.utils.time import Time


class AdminMetrics:
    """The sensors of one admin client. Thread-safe."""

    def __init__(self, config: AdminConfig, time: Time) -> None:
        self._metrics = Metrics(
            time,
            "admin-client-metrics",
            {"client-id": config.client_id},
            window_ms=config.metrics_sample_window_ms,
            samples=config.metrics_num_samples,
        )
        self.network = NetworkMetrics(
            self._metrics, time, authenticates=config.security_protocol != "PLAINTEXT"
        )

    def collect(self) -> list[Measurement]:
        """Return every metric with its value now."""
        self.network.fold()
        return self._metrics.collect()

    def snapshot(self) -> MetricValues:
        """Return every metric's value now, by name."""
        return MetricValues.of(self.collect())
