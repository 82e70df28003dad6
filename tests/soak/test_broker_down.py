"""The broker is gone for long: clients wait, without growing and without work."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import psutil  # type: ignore[import-untyped]
import pytest

from harness.broker.process import BrokerProcess
from harness.consumer.member import Member
from harness.topics import new_topic
from harness.waiting import wait_until
from kclient.errors import KafkaError
from kclient.network.selector import Selector
from kclient.producer import KafkaProducer, RecordMetadata

_SAMPLES = 200
_GROWTH = 0.05
_CPU = 0.05
# Two clients, each with one attempt to connect a second (reconnect.backoff.max.ms) less 20 % jitter, and room for the
# attempts to more than one address.
_ATTEMPTS_PER_S = 5.0
_PER_S = 50
_BYTES = 1000


class Trickle(threading.Thread):
    """Sends at a steady rate and only counts: what grows here must be the producer's."""

    def __init__(self, servers: str, topic: str, **settings: object) -> None:
        super().__init__(name="trickle", daemon=True)
        self.acked = 0
        self.failed = 0
        self._stopping = threading.Event()
        self._settings = {"bootstrap.servers": servers, "client.id": "trickle", **settings}
        self._topic = topic
        self.start()

    def run(self) -> None:
        value = bytes(_BYTES)
        with KafkaProducer(self._settings) as producer:
            while not self._stopping.wait(1 / _PER_S):
                try:
                    producer.send(self._topic, value, on_delivery=self._delivered)
                except KafkaError:
                    self.failed += 1

    def _delivered(self, _metadata: RecordMetadata, error: KafkaError | None) -> None:
        if error is None:
            self.acked += 1
        else:
            self.failed += 1

    def stop(self) -> None:
        """Deliver the rest and close."""
        self._stopping.set()
        self.join(60)
        assert not self.is_alive(), "the producer did not close in time"


@attrs.frozen
class Sample:
    """The process at a moment."""

    at_s: float
    cpu_s: float
    rss: int
    threads: int
    files: int
    attempts: int


@attrs.define
class Watch:
    """Samples the test's own process, which is that of the clients."""

    process: psutil.Process = attrs.Factory(psutil.Process)
    attempts: int = 0
    """Connections tried and requests handed to a socket, of all clients."""
    samples: list[Sample] = attrs.Factory(list)

    def count(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        """Count the calls of a method of every Selector."""
        method: Callable[..., Any] = getattr(Selector, name)

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.attempts += 1
            return method(*args, **kwargs)

        monkeypatch.setattr(Selector, name, counted)

    def run(self, seconds: float) -> None:
        """Take samples at even distances for so long."""
        started = time.monotonic()
        for number in range(_SAMPLES + 1):
            time.sleep(max(0.0, started + number * seconds / _SAMPLES - time.monotonic()))
            process = self.process
            self.samples.append(
                Sample(
                    time.monotonic(),
                    time.process_time(),
                    process.memory_info().rss,
                    process.num_threads(),
                    process.num_fds(),
                    self.attempts,
                )
            )

    def between(self, start: float, end: float) -> list[Sample]:
        """The samples of a part of the time."""
        return self.samples[int(start * _SAMPLES) : int(end * _SAMPLES) + 1]


@pytest.mark.soak(seconds=600)
def test_clients_neither_grow_nor_work_while_the_broker_is_down_and_go_on_afterwards(
    tmp_path: Path, seconds: float, monkeypatch: pytest.MonkeyPatch, verdict: Callable[[list[str]], None]
) -> None:
    watch = Watch()
    with BrokerProcess(tmp_path) as broker:
        topic = new_topic(broker.bootstrap_servers)
        # Records expire all the time: the outage is longer than any that an application would wait for.
        timeout_ms = int(seconds * 1000 / 20)
        load = Trickle(
            broker.bootstrap_servers,
            topic,
            **{
                "delivery.timeout.ms": timeout_ms,
                "request.timeout.ms": timeout_ms // 2,
                "linger.ms": 5,
                "max.block.ms": 100,
            },
        )
        member = Member(broker.bootstrap_servers, topic, f"g-{topic}")
        wait_until(lambda: load.acked > 50 and len(member.records) > 50, 60, "records going round")
        broker.stop()
        watch.count(monkeypatch, "connect")
        watch.count(monkeypatch, "send")
        watch.run(seconds)
        failed = load.failed
        broker.start()
        acked, read = load.acked, len(member.records)
        wait_until(
            lambda: load.acked > acked + 50 and len(member.records) > read + 50,
            90,
            "records going round again",
        )
        load.stop()
        member.stop()
    problems = []
    if not failed:
        problems.append("no record expired")
    early, late = watch.between(0.18, 0.22), watch.between(0.9, 1.0)
    before, after = (statistics.mean(sample.rss for sample in part) for part in (early, late))
    first, last = early[-1], late[-1]
    span_s = last.at_s - first.at_s
    cpu = (last.cpu_s - first.cpu_s) / span_s
    attempts = (last.attempts - first.attempts) / span_s
    print(
        f"RSS {before / 2**20:.1f} -> {after / 2**20:.1f} MiB ({after / before - 1:+.1%}), CPU {cpu:.1%}, "
        f"{attempts:.2f} connects and requests/s, {failed} records expired, threads {first.threads} -> "
        f"{last.threads}, files {first.files} -> {last.files}"
    )
    if after > before * (1 + _GROWTH):
        problems.append(f"RSS grew from {before / 2**20:.1f} to {after / 2**20:.1f} MiB")
    if cpu > _CPU:
        problems.append(f"the clients used {cpu:.1%} of a processor for waiting")
    if attempts > _ATTEMPTS_PER_S:
        problems.append(f"{attempts:.1f} connects and requests a second")
    if last.threads > first.threads:
        problems.append(f"threads went from {first.threads} to {last.threads}")
    if last.files > first.files + 2:  # one socket in the making for each client
        problems.append(f"open files went from {first.files} to {last.files}")
    verdict(problems)
