"""ClientTelemetry: what a client has to tell brokers of itself, and what it has learnt of them (KIP-714, KIP-1076)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping

from kclient.common.uuid import Uuid
from kclient.errors import KafkaTimeoutError
from kclient.metrics import KafkaMetric, Measurement, MetricName
from kclient.utils.steps import Broadcast, Pause, Steps
from kclient.utils.time import Timer


class ClientTelemetry:
    """The metrics of a client and of its application, and the id that brokers know the client by. Thread-safe.

    `collect` gives the client's own metrics, `labels` say which client it is: group_id, client_rack and the like.
    Unless `enabled` nothing is pushed (enable.metrics.push).
    """

    def __init__(
        self,
        collect: Callable[[], Iterable[Measurement]],
        labels: Callable[[], Mapping[str, str]],
        *,
        enabled: bool = True,
    ) -> None:
        self.enabled = enabled
        self.labels = labels
        self._collect = collect
        self._lock = threading.Lock()
        self._changed = Broadcast()
        self._client_instance_id: Uuid | None = None
        self._refused = ""
        self._application: dict[MetricName, KafkaMetric] = {}

    def register(self, metric: KafkaMetric) -> None:
        """Push a metric of the application, too, if brokers ask for it; one of the same name is replaced."""
        with self._lock:
            self._application[metric.name] = metric

    def unregister(self, metric: KafkaMetric) -> None:
        """Push it no more."""
        with self._lock:
            self._application.pop(metric.name, None)

    def measurements(self) -> list[Measurement]:
        """Return all metrics as they are now; those of the application do not come before the client's own."""
        own = list(self._collect())
        names = {each.name for each in own}
        with self._lock:
            application = list(self._application.values())
        return own + [metric.measure() for metric in application if metric.name not in names]

    def identified(self, client_instance_id: Uuid) -> None:
        """A broker has named the client."""
        with self._lock:
            self._client_instance_id = client_instance_id
            self._changed.notify_all()

    def refused(self, reason: str) -> None:
        """No broker will name it for now; whoever waits for that hears why when the time is over."""
        with self._lock:
            self._refused = reason

    def client_instance_id(self, timer: Timer) -> Steps[Uuid]:
        """Wait until a broker has named the client. Raises KafkaTimeoutError that says why none has."""
        while True:
            with self._lock:
                if self._client_instance_id is not None:
                    return self._client_instance_id
                if timer.is_expired():
                    reason = self._refused or "no broker was asked yet"
                    raise KafkaTimeoutError(
                        f"No broker has given the client an instance id within {timer.timeout_ms} ms: {reason}"
                    )
                changed = self._changed.next()
            yield Pause(changed, timer)
