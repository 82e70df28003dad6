"""The broker goes away under load and comes back: nothing acknowledged is lost, nothing is there twice."""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from harness.consumer.member import Member
from harness.real_kafka.broker import RealKafka
from harness.topics import new_topic, read_all
from harness.waiting import wait_until
from kclient.errors import KafkaError
from kclient.producer import KafkaProducer, RecordMetadata


class Load(threading.Thread):
    """Sends numbered records until stopped; keeps what was acknowledged and what failed."""

    def __init__(self, servers: str, topic: str) -> None:
        super().__init__(daemon=True)
        self.acked: dict[int, RecordMetadata] = {}
        self.failed: dict[int, KafkaError] = {}
        self.sent = 0
        self._topic = topic
        self._stopping = threading.Event()
        self._producer = KafkaProducer(
            bootstrap_servers=servers, linger_ms=2, request_timeout_ms=5000, delivery_timeout_ms=60_000
        )
        self.start()

    def run(self) -> None:
        with self._producer as producer:
            while not self._stopping.is_set():
                number = self.sent
                self.sent += 1

                def delivered(
                    metadata: RecordMetadata, error: KafkaError | None, number: int = number
                ) -> None:
                    if error is None:
                        self.acked[number] = metadata
                    else:
                        self.failed[number] = error

                producer.send(self._topic, b"%d" % number, key=b"k%d" % (number % 10), on_delivery=delivered)
                if number % 20 == 0:
                    self._stopping.wait(0.002)  # a steady load, not a flood

    def stop(self) -> None:
        self._stopping.set()
        self.join(120)
        assert not self.is_alive()


class Alone(threading.Thread):
    """Sends numbered records one by one, each when the one before is acknowledged; keeps their offsets."""

    def __init__(self, servers: str, topic: str) -> None:
        super().__init__(daemon=True)
        self.offsets: list[int] = []
        self.error: KafkaError | None = None
        self._topic = topic
        self._stopping = threading.Event()
        self._producer = KafkaProducer(
            bootstrap_servers=servers, linger_ms=0, request_timeout_ms=5000, delivery_timeout_ms=60_000
        )
        self.start()

    def run(self) -> None:
        with self._producer as producer:
            while not self._stopping.is_set():
                try:
                    self.offsets.append(
                        producer.send(self._topic, b"%d" % len(self.offsets), partition=0).result(60).offset
                    )
                except KafkaError as error:
                    self.error = error
                    return

    def stop(self) -> None:
        self._stopping.set()
        self.join(120)
        assert not self.is_alive()


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_nothing_acknowledged_is_lost_or_doubled_when_the_broker_restarts(kafka: RealKafka, how: str) -> None:
    topic = new_topic(kafka.bootstrap_servers, 3)
    member = Member(kafka.bootstrap_servers, topic, f"g-{topic}")
    load = Load(kafka.bootstrap_servers, topic)
    topic_alone = new_topic(kafka.bootstrap_servers, 1)
    alone = Alone(kafka.bootstrap_servers, topic_alone)
    for _ in range(2):
        before = len(load.acked)
        wait_until(lambda: len(load.acked) > before + 2000, 60, "records acknowledged")  # noqa: B023
        getattr(kafka, how)()
        kafka.start()
    before = len(load.acked)
    wait_until(lambda: len(load.acked) > before + 2000, 60, "records acknowledged after the last restart")
    load.stop()
    alone.stop()
    assert alone.error is None
    records = read_all(kafka.bootstrap_servers, topic_alone)
    assert [record.value for record in records] == [b"%d" % i for i in range(len(alone.offsets))]
    assert all(told in (-1, record.offset) for told, record in zip(alone.offsets, records, strict=True))
    assert not load.failed
    assert len(load.acked) == load.sent
    wait_until(
        lambda: len({r.value for r in member.records}) == load.sent, 60, "the group reading everything"
    )
    member.stop()
    records = read_all(kafka.bootstrap_servers, topic)
    assert Counter(r.value for r in records) == Counter(b"%d" % i for i in range(load.sent))
    places = {(r.partition, r.offset): r.value for r in records}
    # An offset of -1: known to be written by the answer to a younger batch, where its own answer was lost.
    assert all(places[m.partition, m.offset] == b"%d" % n for n, m in load.acked.items() if m.offset >= 0)
    assert sum(m.offset < 0 for m in load.acked.values()) < load.sent / 2
    last: dict[bytes | None, int] = {}
    for record in records:
        assert last.get(record.key, -1) < int(record.value or b"-1")
        last[record.key] = int(record.value or b"-1")
