"""Metrics of clients for Prometheus. Needs the extra: `pip install 'kclient-kafka[prometheus]'`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from kclient.metrics import Measurement
from kclient.observability.measured import Measured

try:
    from prometheus_client.core import Metric
    from prometheus_client.registry import Collector
except ImportError as error:
    raise ImportError(
        "kclient.observability.prometheus needs prometheus-client: pip install 'kclient-kafka[prometheus]'"
    ) from error

_NO_NAME = re.compile(r"[^a-zA-Z0-9_]")


class KafkaCollector(Collector):
    """Gives the metrics of clients to a registry of prometheus_client. Thread-safe.

    The metric `record-send-total` of the group `producer-metrics` is `kafka_producer_record_send_total`, with the tags
    of the metric as labels: `client_id`, `topic` and the like. Sums that only grow are counters, all others gauges;
    metrics without a value are left out. Clients that are closed keep their last values until `remove`.

        REGISTRY.register(KafkaCollector(producer, consumer))
    """

    def __init__(self, *clients: Measured) -> None:
        self._clients = clients

    def add(self, client: Measured) -> None:
        """Give the metrics of one more client."""
        self._clients = (*self._clients, client)

    def remove(self, client: Measured) -> None:
        """Give those of this client no more."""
        self._clients = tuple(each for each in self._clients if each is not client)

    def describe(self) -> list[Metric]:
        """Return nothing: names are known when there is something to count."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield every metric with its values now."""
        families: dict[str, Metric] = {}
        for client in self._clients:
            for measurement in client.measurements():
                if math.isfinite(measurement.value):
                    _add(families, measurement)
        yield from families.values()


def _add(families: dict[str, Metric], measurement: Measurement) -> None:
    name = measurement.name
    full = _word(f"kafka_{name.group.removesuffix('-metrics')}_{name.name}")
    # One family for all: a client, its topics and their partitions have metrics of one name in one group.
    family = families.get(full)
    if family is None:
        kind = "counter" if measurement.cumulative else "gauge"
        family = families[full] = Metric(
            full.removesuffix("_total") if measurement.cumulative else full,
            name.description or name.name,
            kind,
        )
    sample = f"{family.name}_total" if family.type == "counter" else full
    family.add_sample(sample, {_word(key): text for key, text in name.tags}, measurement.value)


def _word(text: str) -> str:
    return _NO_NAME.sub("_", text)
