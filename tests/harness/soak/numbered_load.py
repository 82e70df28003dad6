"""Producers of numbered records for a cluster that misbehaves."""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

from harness.soak.account import Account, Place
from kclient.errors import KafkaError
from kclient.producer import KafkaProducer, RecordMetadata

_CLOSE_S = 90.0
_BURST = 20
_IN_A_ROW = 8


class NumberedLoad(threading.Thread):
    """Sends records in bursts until stopped, each with a callback, and keeps the account of them.

    With `alone` each record is sent when the one before has its outcome, and its future alone tells it.
    """

    def __init__(
        self,
        servers: str,
        name: str,
        places: Sequence[Place],
        rng: random.Random,
        *,
        per_s: int,
        alone: bool = False,
        **settings: object,
    ) -> None:
        super().__init__(name=f"load-{name}", daemon=True)
        self.account = Account(name, places, 1 if alone else _IN_A_ROW)
        self.problems: list[str] = []
        self._rng = rng
        self._per_s = per_s
        self._alone = alone
        self._stopping = threading.Event()
        self._futures: deque[tuple[int, Any]] = deque()
        self._settings = {"bootstrap.servers": servers, "client.id": f"load-{name}", **settings}
        self.start()

    def run(self) -> None:
        try:
            with KafkaProducer(self._settings) as producer:
                self._run(producer)
            self._look_at_futures()
        except BaseException as error:
            self.problems.append(f"load: {self.account.name} ended with {error!r}")
        self.problems += [
            f"unaccounted: the future of {self.account.value(number)!r} has no outcome"
            for number, _ in self._futures
        ]

    def end(self) -> None:
        """Send nothing more, deliver the rest and close; `wait` for it."""
        self._stopping.set()

    def wait(self) -> None:
        """Wait for the end."""
        self.join(_CLOSE_S)
        if self.is_alive():
            self.problems.append(f"load: {self.account.name} did not close within {_CLOSE_S:.0f} s")

    def _run(self, producer: KafkaProducer[bytes, bytes]) -> None:
        send = self._send_alone if self._alone else self._send
        pause_s = 0.0
        while not self._stopping.wait(pause_s):
            burst = self._rng.randint(1, _BURST)
            for _ in range(burst):
                send(producer)
            self._look_at_futures()
            pause_s = burst / self._per_s

    def _send_alone(self, producer: KafkaProducer[bytes, bytes]) -> None:
        number = self.account.new()
        topic, partition = self.account.place(number)
        try:
            metadata = producer.send(topic, self.account.value(number), partition=partition).result(_CLOSE_S)
        except KafkaError as error:
            self.account.failed(number, error)
        else:
            self.account.acked(number, metadata.offset)

    def _send(self, producer: KafkaProducer[bytes, bytes]) -> None:
        number = self.account.new()
        topic, partition = self.account.place(number)

        def delivered(metadata: RecordMetadata, error: KafkaError | None) -> None:
            if error is None:
                self.account.acked(number, metadata.offset)
            else:
                self.account.failed(number, error)

        try:
            future = producer.send(
                topic, self.account.value(number), partition=partition, on_delivery=delivered
            )
        except KafkaError as error:
            self.account.failed(number, error)
        else:
            self._futures.append((number, future))

    def _look_at_futures(self) -> None:
        """Hold the futures that are done against what the callbacks were told."""
        while self._futures and self._futures[0][1].done() and self.account.told(self._futures[0][0]):
            number, future = self._futures.popleft()
            error = future.exception()
            offset = None if error is not None else future.result().offset
            if offset != self.account.offset(number):
                self.problems.append(
                    f"unaccounted: {self.account.value(number)!r}: its future says {error or offset}, its callback "
                    f"{self.account.errors.get(number, self.account.offset(number))}"
                )
