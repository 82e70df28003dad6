"""Telemetry that a real broker receives: a plugin in Java, compiled here, that writes each push into a file."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import attrs
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

PLUGIN = "WrittenTelemetry"
"""The class in Java, for `java.compiled`."""


@attrs.frozen
class Push:
    """One push as the broker's plugin got it. `metrics` has a value by name and attributes."""

    client_id: str
    client_instance_id: str
    terminating: bool
    content_type: str
    metrics: dict[tuple[str, frozenset[tuple[str, str]]], float]
    labels: dict[str, str]

    def value(self, name: str, **attributes: str) -> float:
        """The value of a metric, 0 if it is not there."""
        return self.metrics.get((f"org.apache.kafka.{name}", frozenset(attributes.items())), 0.0)

    @property
    def names(self) -> set[str]:
        """The names of the metrics."""
        return {name for name, _ in self.metrics}


def settings(directory: Path) -> dict[str, str]:
    """Lines of server.properties for a broker whose plugin writes into `directory`."""
    return {"metric.reporters": PLUGIN, "written.telemetry.directory": str(directory)}


def pushes(directory: Path) -> list[Push]:
    """All pushes so far, oldest first."""
    return [_read(path) for path in sorted(directory.glob("*.push"))]


def _read(path: Path) -> Push:
    client_id, instance_id, terminating, content_type, data = path.read_text().split("\n")
    found = MetricsData.FromString(base64.b64decode(data))
    metrics: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    labels: dict[str, str] = {}
    for resource in found.resource_metrics:
        labels |= _attributes(resource.resource)
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                for point in (*metric.gauge.data_points, *metric.sum.data_points):
                    metrics[metric.name, frozenset(_attributes(point).items())] = point.as_double
    return Push(client_id, instance_id, terminating == "true", content_type, metrics, labels)


def _attributes(holder: Any) -> dict[str, str]:
    return {each.key: each.value.string_value for each in holder.attributes}
