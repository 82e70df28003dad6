"""Producers that send at a steady rate and write down what they do."""

from __future__ import annotations

import threading

from harness.checker.log import HistoryLog
from harness.soak.recorded import RecordedProducer
from kclient.producer import KafkaProducer

_KEYS = 10
_CLOSE_S = 150.0


class Load(threading.Thread):
    """Sends numbered records at a steady rate until stopped; what became of each is in `history`.

    With `alone` each record is sent with the same key, without linger, when the one before has its outcome. Records are
    of `size` bytes at least.
    """

    def __init__(
        self,
        servers: str,
        topic: str,
        name: str,
        history: HistoryLog,
        *,
        per_s: int,
        alone: bool = False,
        size: int = 0,
        **settings: object,
    ) -> None:
        super().__init__(name=f"load-{name}", daemon=True)
        idempotent = settings.get("enable.idempotence", True) is True
        self.recorded = RecordedProducer(history.producer(name, idempotent=idempotent))
        self.error: BaseException | None = None
        self._label = name
        self._topic = topic
        self._pause_s = 1 / per_s
        self._alone = alone
        self._size = size
        self._stopping = threading.Event()
        self._producer: KafkaProducer[bytes, bytes] | None = None
        self._settings = {
            "bootstrap.servers": servers,
            "client.id": f"load-{name}",
            "linger.ms": 0 if alone else 2,
            **settings,
        }
        self.start()

    @property
    def acked(self) -> int:
        """Records that were acknowledged so far."""
        return self.recorded.acked

    def metric(self, name: str) -> float:
        """Value of a metric of the producer as a whole, 0 as long as there is none."""
        found = {} if self._producer is None else self._producer.metrics()
        return sum(
            value for key, value in found.items() if (key.name, key.group) == (name, "producer-metrics")
        )

    def run(self) -> None:
        try:
            with KafkaProducer(self._settings) as producer:
                self._producer = producer
                number = 0
                while not self._stopping.wait(self._pause_s):
                    self._send(producer, number)
                    number += 1
            self.recorded.closed()
        except BaseException as error:
            self.error = error

    def _send(self, producer: KafkaProducer[bytes, bytes], number: int) -> None:
        value = f"{self._label}:{number}".ljust(self._size).encode()
        if self._alone:
            key = self._label.encode()
            self.recorded.send_alone(producer, self._topic, value, key=key, timeout_s=_CLOSE_S)
        else:
            key = f"{self._label}:{number % _KEYS}".encode()
            self.recorded.send(producer, self._topic, value, key=key)
            self.recorded.look_at_futures()

    def stop(self) -> None:
        """Deliver the rest and close; raises what ended the load, if something did."""
        self._stopping.set()
        self.join(_CLOSE_S)
        assert not self.is_alive(), f"{self.name} did not close in time"
        if self.error is not None:
            raise self.error
