"""Metrics of clients for OpenTelemetry. Needs the extra: `pip install 'kclient-kafka[otel]'`."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable

from kclient.metrics import Measurement
from kclient.observability.measured import Measured

try:
    from opentelemetry.metrics import CallbackOptions, Meter, Observation, get_meter
except ImportError as error:
    raise ImportError(
        "kclient.observability.otel_metrics needs opentelemetry-api: pip install 'kclient-kafka[otel]'"
    ) from error

_SAME_COLLECTION_S = 0.5


class KafkaInstruments:
    """Observable instruments of a meter for the metrics of clients. Thread-safe.

    The metric `record-send-total` of the group `producer-metrics` is the instrument `kafka.producer.record_send_total`,
    with the tags of the metric as attributes. Sums that only grow are observable counters, all others observable
    gauges; metrics without a value are left out. A client has more names once it has a topic or a node: call `update`
    then. After `close` nothing more is observed.

    All clients of a meter go into one object: of two instruments of one name a meter reads the first alone.
    """

    def __init__(self, *clients: Measured, meter: Meter | None = None) -> None:
        self._clients = clients
        self._meter = meter or get_meter("kclient")
        self._lock = threading.Lock()
        self._made: set[str] = set()
        self._seen: dict[str, list[Measurement]] = {}
        self._seen_s = -math.inf
        self.update()

    def add(self, client: Measured) -> None:
        """Observe one more client. Not for callbacks of instruments, as `update`."""
        with self._lock:
            self._clients = (*self._clients, client)
        self.update()

    def remove(self, client: Measured) -> None:
        """Observe this client no more."""
        with self._lock:
            self._clients = tuple(each for each in self._clients if each is not client)
            self._seen_s = -math.inf

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
        """Let go of the clients."""
        with self._lock:
            self._clients = ()
            self._seen = {}

    def _observer(self, name: str) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def observe(_: CallbackOptions) -> Iterable[Observation]:
            # A collection asks every instrument: each client is asked once for all of them.
            return [
                Observation(each.value, dict(each.name.tags))
                for each in self._look(_SAME_COLLECTION_S).get(name, ())
                if math.isfinite(each.value)
            ]

        return observe

    def _look(self, max_age_s: float) -> dict[str, list[Measurement]]:
        with self._lock:
            now_s = time.monotonic()
            if now_s - self._seen_s >= max_age_s:
                seen: dict[str, list[Measurement]] = {}
                for client in self._clients:
                    for each in client.measurements():
                        seen.setdefault(_instrument(each), []).append(each)
                self._seen, self._seen_s = seen, now_s
            return self._seen


def _instrument(measurement: Measurement) -> str:
    name = measurement.name
    return f"kafka.{name.group.removesuffix('-metrics')}.{name.name}".replace("-", "_")
