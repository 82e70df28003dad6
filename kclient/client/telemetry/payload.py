"""Metrics as brokers want them: MetricsData of OpenTelemetry's protocol, in protobuf's wire format (KIP-714).

Of the field numbers of opentelemetry/proto/metrics/v1/metrics.proto only those that a client has values for.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from kclient.metrics import Measurement, MetricName
from kclient.protocol.wire import unsigned_varint

_PREFIX: Final = "org.apache.kafka."
_VARINT, _FIXED64, _BYTES = 0, 1, 2  # wire types
_DELTA, _CUMULATIVE = 1, 2  # AggregationTemporality


def telemetry_name(name: MetricName) -> str:
    """Return the name by which a subscription asks for a metric, such as org.apache.kafka.producer.record.send.rate."""
    group = name.group.removesuffix("-metrics")
    return f"{_PREFIX}{group}.{name.name}".replace("-", ".")


@attrs.frozen
class _Sum:
    value: float
    at_ns: int


@attrs.define(eq=False)
class PayloadEncoder:
    """Encodes the metrics of one client. Not thread-safe.

    It remembers sums, so that those of a subscription with delta temporality say what was added since the last time.
    """

    _started_ns: int
    _sums: dict[MetricName, _Sum] = attrs.field(factory=dict, init=False)

    def encode(
        self,
        measurements: Iterable[Measurement],
        labels: Mapping[str, str],
        now_ns: int,
        *,
        delta: bool,
    ) -> bytes:
        """Return the payload, empty if no metric has a value.

        `labels` say which client it is, `now_ns` is the time since the epoch.
        """
        before, self._sums = self._sums, {}
        metrics = [
            _field(2, self._metric(each, before if delta else None, now_ns))
            for each in measurements
            if math.isfinite(each.value)
        ]
        if not metrics:
            return b""
        resource = b"".join(_attribute(1, key, value) for key, value in labels.items())
        return _field(1, _field(1, resource) + _field(2, b"".join(metrics)))

    def _metric(
        self, measurement: Measurement, before: Mapping[MetricName, _Sum] | None, now_ns: int
    ) -> bytes:
        name, value = measurement.name, measurement.value
        text = _field(1, telemetry_name(name).encode(errors="replace"))
        if not measurement.cumulative:
            return text + _field(5, _field(1, _point(name, value, None, now_ns)))
        since_ns = self._started_ns
        temporality = _CUMULATIVE
        if before is not None:
            temporality = _DELTA
            self._sums[name] = _Sum(value, now_ns)
            last = before.get(name)
            if last is not None:
                value, since_ns = value - last.value, last.at_ns
        point = _field(1, _point(name, value, since_ns, now_ns))
        return text + _field(7, point + _number(2, temporality) + _number(3, 1))


def _point(name: MetricName, value: float, since_ns: int | None, now_ns: int) -> bytes:
    # A broker knows the client's id.
    tags = [(key.replace("-", "_"), text) for key, text in name.tags if key != "client-id"]
    return b"".join(
        (
            b"" if since_ns is None else _fixed64(2, struct.pack("<Q", since_ns)),
            _fixed64(3, struct.pack("<Q", now_ns)),
            _fixed64(4, struct.pack("<d", value)),
            *(_attribute(7, key, text) for key, text in tags),
        )
    )


def _attribute(number: int, key: str, text: str) -> bytes:
    return _field(
        number, _field(1, key.encode(errors="replace")) + _field(2, _field(1, text.encode(errors="replace")))
    )


def _field(number: int, content: bytes) -> bytes:
    return unsigned_varint(number << 3 | _BYTES) + unsigned_varint(len(content)) + content


def _number(number: int, value: int) -> bytes:
    return unsigned_varint(number << 3 | _VARINT) + unsigned_varint(value)


def _fixed64(number: int, packed: bytes) -> bytes:
    return unsigned_varint(number << 3 | _FIXED64) + packed
