"""Producers of numbered records for a cluster that misbehaves."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence

from harness.checker.history import Place
from harness.checker.log import HistoryLog
from harness.soak.recorded import RecordedProducer
from kclient.producer import KafkaProducer

_CLOSE_S = 90.0
_BURST = 20
_IN_A_ROW = 8


class NumberedLoad(threading.Thread):
    """Sends records in bursts until stopped, each with a callback; what became of each is in `history`.

    Records go round `places`, some in a row to each. With `alone` each is sent when the one before has its outcome,
    and its future alone tells it.
    """

    def __init__(
        self,
        servers: str,
        name: str,
        places: Sequence[Place],
        rng: random.Random,
        history: HistoryLog,
        *,
        per_s: int,
        alone: bool = False,
        **settings: object,
    ) -> None:
        super().__init__(name=f"load-{name}", daemon=True)
        self.problems: list[str] = []
        self._recorded = RecordedProducer(history.producer(name))
        self._label = name
        self._places = places
        self._rng = rng
        self._per_s = per_s
        self._alone = alone
        self._in_a_row = 1 if alone else _IN_A_ROW
        self._stopping = threading.Event()
        self._settings = {"bootstrap.servers": servers, "client.id": f"load-{name}", **settings}
        self.start()

    def run(self) -> None:
        try:
            with KafkaProducer(self._settings) as producer:
                self._run(producer)
            self._recorded.closed()
        except BaseException as error:
            self.problems.append(f"load: {self._label} ended with {error!r}")
        self.problems += self._recorded.problems

    def end(self) -> None:
        """Send nothing more, deliver the rest and close; `wait` for it."""
        self._stopping.set()

    def wait(self) -> None:
        """Wait for the end."""
        self.join(_CLOSE_S)
        if self.is_alive():
            self.problems.append(f"load: {self._label} did not close within {_CLOSE_S:.0f} s")

    def _run(self, producer: KafkaProducer[bytes, bytes]) -> None:
        pause_s = 0.0
        number = 0
        while not self._stopping.wait(pause_s):
            burst = self._rng.randint(1, _BURST)
            for _ in range(burst):
                self._send(producer, number)
                number += 1
            self._recorded.look_at_futures()
            pause_s = burst / self._per_s

    def _send(self, producer: KafkaProducer[bytes, bytes], number: int) -> None:
        topic, partition, _ = self._places[number // self._in_a_row % len(self._places)]
        value = f"{self._label}:{number}".encode()
        if self._alone:
            self._recorded.send_alone(producer, topic, value, partition=partition, timeout_s=_CLOSE_S)
        else:
            self._recorded.send(producer, topic, value, partition=partition)
