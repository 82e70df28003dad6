"""Metrics of clients for OpenTelemetry. Needs the extra: `pip install 'kclient-kafka[otel]'`."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable
from typing import Protocol

from kclient.metrics import Measurement

try:
    from opentelemetry.metrics import CallbackOptions, Meter, Observation, get_meter
except ImportError as error:
    raise ImportError(
        "kclient.observability.otel_metrics needs opentelemetry-api: pip install 'kclient-kafka[otel]'"
    ) from error

_SAME_COLLECTION_S = 0.5


class Measured(Protocol):
    """A client with metrics: KafkaProducer, KafkaConsumer, KafkaAdminClient."""

    def measurements(self) -> list[Measurement]:
        """Return every metric with its value now."""


class KafkaInstruments:
    """Observable instruments of a meter for the metrics of a client. Thread-safe.

    The metric `record-send-total` of the group `producer-metrics` is the instrument `kafka.producer.record_send_total`,
    with the tags of the metric as attributes. Sums that only grow are observable counters, all others observable
    gauges; metrics without a value are left out. A client has more names once it has a topic or a node: call `update`
    then. After `close` nothing more is observed.
    """

    def __init__(self, client: Measured, meter: Meter | None = None) -> None:
        self._client: Measured | None = client
        self._meter = meter or get_meter("kclient")
        self._lock = threading.Lock()
        self._made: set[str] = set()
        self._seen: dict[str, list[Measurement]] = {}
        self._seen_s = -math.inf
        self.update()

    def update(self) -> None:
        """Make instruments for the names that are new. Not for callbacks of instruments, which would wait for ever."""
        for name, measurements in self._look(0).items():
            with self._lock:
                if name in self._made:
                    continue
                self._made.add(name)
            make = (
                self._meter.create_observable_counter
                if measurements[0].cumulative
                else self._meter.create_observable_gauge
            )
            make(name, callbacks=[self._observer(name)], description=measurements[0].name.description)

    def close(self) -> None:
        """Let go of the client."""
        with self._lock:
            self._client = None
            self._seen = {}

    def _observer(self, name: str) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def observe(_: CallbackOptions) -> Iterable[Observation]:
            # A collection asks every instrument: the client is asked once for all of them.
            return [
                Observation(each.value, dict(each.name.tags))
                for each in self._look(_SAME_COLLECTION_S).get(name, ())
                if math.isfinite(each.value)
            ]

        return observe

    def _look(self, max_age_s: float) -> dict[str, list[Measurement]]:
        with self._lock:
            now_s = time.monotonic()
            if self._client is not None and now_s - self._seen_s >= max_age_s:
                seen: dict[str, list[Measurement]] = {}
                for each in self._client.measurements():
                    seen.setdefault(_instrument(each), []).append(each)
                self._seen, self._seen_s = seen, now_s
            return self._seen


def _instrument(measurement: Measurement) -> str:
    name = measurement.name
    return f"kafka.{name.group.removesuffix('-metrics')}.{name.name}".replace("-", "_")
