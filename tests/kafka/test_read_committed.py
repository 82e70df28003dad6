"""Reading committed data alone from a real broker, through transactions of all kinds (F38)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from harness.consumer.reader import reader
from harness.real_kafka.broker import RealKafka
from harness.topics import DEADLINE_S, new_topic
from harness.waiting import wait_until
from kclient import KafkaConsumer, KafkaProducer, TopicPartition

Bytes = KafkaConsumer[bytes, bytes]


@contextmanager
def transactional(kafka: RealKafka, name: str) -> Iterator[KafkaProducer[bytes, bytes]]:
    with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, transactional_id=name) as producer:
        producer.init_transactions()
        yield producer


def send(producer: KafkaProducer[bytes, bytes], topic: str, *values: bytes) -> None:
    for value in values:
        producer.send(topic, value, partition=0)
    producer.flush()


def read_to(consumer: Bytes, tp: TopicPartition, position: int) -> list[bytes | None]:
    """The values that come until the position is there; time is up if it stands still before."""
    found: list[bytes | None] = []
    deadline = time.monotonic() + DEADLINE_S
    while consumer.position(tp) < position:
        assert time.monotonic() < deadline, f"{found} came, and the position is {consumer.position(tp)}"
        found += [record.value for record in consumer.poll(200)]
    return found


@pytest.mark.parametrize("most_bytes", [1_048_576, 1])
def test_transactions_that_overlap_are_told_apart_whatever_a_fetch_holds_of_them(
    kafka: RealKafka, most_bytes: int
) -> None:
    topic = new_topic(kafka.bootstrap_servers, 1)
    tp = TopicPartition(topic, 0)
    with transactional(kafka, f"{topic}-a") as first, transactional(kafka, f"{topic}-b") as second:
        for end in ("abort", "commit"):
            for producer, name in ((first, b"a"), (second, b"b")):
                producer.begin_transaction()
                send(producer, topic, name + end.encode())
            send(first, topic, b"a2" + end.encode())
            if end == "abort":
                first.abort_transaction()
                send(second, topic, b"b2" + end.encode())
                second.commit_transaction()
            else:
                second.abort_transaction()
                send(first, topic, b"a3" + end.encode())
                first.commit_transaction()
    with reader(
        kafka.bootstrap_servers, topic, isolation_level="read_committed", max_partition_fetch_bytes=most_bytes
    ) as consumer:
        # Four records and two markers each time.
        assert read_to(consumer, tp, 12) == [b"babort", b"b2abort", b"acommit", b"a2commit", b"a3commit"]
        assert consumer.current_lag(tp) == 0


def test_fetches_with_nothing_but_aborted_data_are_passed(kafka: RealKafka) -> None:
    topic = new_topic(kafka.bootstrap_servers, 1)
    tp = TopicPartition(topic, 0)
    with transactional(kafka, topic) as producer:
        for _ in range(2):
            producer.begin_transaction()
            send(producer, topic, *[bytes(10_000)] * 100)
            producer.abort_transaction()
        producer.begin_transaction()
        send(producer, topic, b"last")
        producer.commit_transaction()
    with reader(
        kafka.bootstrap_servers, topic, isolation_level="read_committed", max_partition_fetch_bytes=1
    ) as consumer:
        assert read_to(consumer, tp, 204) == [b"last"]
        assert consumer.metrics()["fetch-total"] > 3, "several fetches had nothing for the application"


def test_an_open_transaction_holds_back_what_comes_after_it(kafka: RealKafka) -> None:
    topic = new_topic(kafka.bootstrap_servers, 1)
    tp = TopicPartition(topic, 0)
    with (
        transactional(kafka, topic) as producer,
        KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as plain,
        reader(kafka.bootstrap_servers, topic, isolation_level="read_committed") as consumer,
    ):
        send(plain, topic, b"before")
        producer.begin_transaction()
        send(producer, topic, b"open")
        send(plain, topic, b"behind")
        assert read_to(consumer, tp, 1) == [b"before"]
        assert not consumer.poll(1000)
        wait_until(lambda: not consumer.poll(0) and consumer.current_lag(tp) == 0, DEADLINE_S, "the lag")
        producer.commit_transaction()
        assert read_to(consumer, tp, 4) == [b"open", b"behind"]
