"""ClientMetrics: what the metrics of all clients have in common, under Java's names."""

from __future__ import annotations

from kclient.client.network_metrics import NetworkMetrics
from kclient.config.client_configs import ClientConfig
from kclient.metrics import Measurement, Metrics, MetricValues
from kclient.utils.time import Time


class ClientMetrics:
    """The metrics of one client: those of its connections, and what a subclass adds. Thread-safe."""

    def __init__(self, config: ClientConfig, time: Time, group: str) -> None:
        self._metrics = Metrics(
            time,
            group,
            {"client-id": config.client_id},
            window_ms=config.metrics_sample_window_ms,
            samples=config.metrics_num_samples,
        )
        self.network = NetworkMetrics(
            self._metrics, time, authenticates=config.security_protocol != "PLAINTEXT"
        )

    def _catch_up(self) -> None:
        """Hand to the sensors what was only counted so far. To override."""

    def collect(self) -> list[Measurement]:
        """Return every metric with its value now."""
        self._catch_up()
        self.network.fold()
        return self._metrics.collect()

    def snapshot(self) -> MetricValues:
        """Return every metric's value now, by name."""
        return MetricValues.of(self.collect())
