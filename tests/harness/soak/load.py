"""Producers that keep a record of what they did."""

from __future__ import annotations

import threading

from kclient.errors import KafkaError
from kclient.producer import KafkaProducer, RecordMetadata

_KEYS = 10
_CLOSE_S = 150.0


class Load(threading.Thread):
    """Sends numbered records at a steady rate until stopped, and notes what became of each.

    `acked` and `failed` are written on the producer's I/O thread only; or by the load itself, if every record is sent
    `alone`, with one key, no linger, and when the one before has its outcome.
    """

    def __init__(
        self, servers: str, topic: str, name: str, *, per_s: int, alone: bool = False, **settings: object
    ) -> None:
        super().__init__(name=f"load-{name}", daemon=True)
        self.label = name
        self.sent: dict[bytes, bytes] = {}
        """Value -> key, in the order of sending."""
        self.acked: dict[bytes, RecordMetadata] = {}
        self.failed: dict[bytes, KafkaError] = {}
        self.refused = 0
        """Records that `send` did not take."""
        self.error: BaseException | None = None
        self._topic = topic
        self._pause_s = 1 / per_s
        self._alone = alone
        self._stopping = threading.Event()
        self._settings = {
            "bootstrap.servers": servers,
            "client.id": f"load-{name}",
            "linger.ms": 0 if alone else 2,
            **settings,
        }
        self.start()

    def run(self) -> None:
        try:
            with KafkaProducer(self._settings) as producer:
                number = 0
                send = self._send_alone if self._alone else self._send
                while not self._stopping.wait(self._pause_s):
                    send(producer, number)
                    number += 1
        except BaseException as error:
            self.error = error

    def _send_alone(self, producer: KafkaProducer[bytes, bytes], number: int) -> None:
        value, key = f"{self.label}:{number}".encode(), self.label.encode()
        future = producer.send(self._topic, value, key=key)
        self.sent[value] = key
        try:
            self.acked[value] = future.result()
        except KafkaError as error:
            self.failed[value] = error

    def _send(self, producer: KafkaProducer[bytes, bytes], number: int) -> None:
        value = f"{self.label}:{number}".encode()
        key = f"{self.label}:{number % _KEYS}".encode()

        def delivered(metadata: RecordMetadata, error: KafkaError | None) -> None:
            if error is None:
                self.acked[value] = metadata
            else:
                self.failed[value] = error

        try:
            producer.send(self._topic, value, key=key, on_delivery=delivered)
        except KafkaError:
            self.refused += 1
        else:
            self.sent[value] = key

    def stop(self) -> None:
        """Deliver the rest and close; raises what ended the load, if something did."""
        self._stopping.set()
        self.join(_CLOSE_S)
        assert not self.is_alive(), f"{self.name} did not close in time"
        if self.error is not None:
            raise self.error
