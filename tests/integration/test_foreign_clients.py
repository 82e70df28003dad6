"""Other Kafka clients against the embedded broker, as black boxes: produce, groups, commits, resume."""

from __future__ import annotations

import asyncio
import importlib.util
import time
from collections.abc import Iterator
from typing import Any

import pytest

from kclient.broker.embedded import EmbeddedKafka

pytestmark = [
    pytest.mark.peers,
    pytest.mark.heavy,
    # What other clients do with deprecated calls and at their own ends is their affair.
    pytest.mark.filterwarnings("ignore"),
]

RECORDS = 300
DEADLINE_S = 30.0


def needs(module: str) -> pytest.MarkDecorator:
    """Skip where the client is not installed."""
    missing = importlib.util.find_spec(module) is None
    return pytest.mark.skipif(missing, reason=f"{module} is not installed (pip install '.[peers]')")


@pytest.fixture
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(offsets_topic_num_partitions=4) as running:
        yield running


def expected(first: int, last: int) -> list[bytes]:
    return [b"value-%d" % number for number in range(first, last)]


class Confluent:
    """Scripts for confluent-kafka (librdkafka)."""

    def __init__(self, servers: str) -> None:
        self.base = {"bootstrap.servers": servers, "log_level": 0}

    def create_topic(self, name: str, partitions: int) -> None:
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient(self.base)
        for future in admin.create_topics([NewTopic(name, partitions, 1)]).values():
            future.result(DEADLINE_S)
        described = admin.list_topics(timeout=DEADLINE_S).topics[name]
        assert len(described.partitions) == partitions

    def produce(self, topic: str, first: int, last: int) -> None:
        from confluent_kafka import Producer

        failures: list[Any] = []
        producer = Producer({**self.base, "enable.idempotence": True})
        for number in range(first, last):
            producer.produce(
                topic,
                b"value-%d" % number,
                key=b"%d" % (number % 7),
                on_delivery=lambda error, _: failures.append(error) if error else None,
            )
        assert producer.flush(DEADLINE_S) == 0
        assert failures == []

    def consume(self, topic: str, group: str, count: int) -> list[bytes]:
        from confluent_kafka import Consumer

        consumer = Consumer(
            {**self.base, "group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        )
        consumer.subscribe([topic])
        values: list[bytes] = []
        deadline = time.monotonic() + DEADLINE_S
        try:
            while len(values) < count and time.monotonic() < deadline:
                for message in consumer.consume(count, 0.2):
                    assert message.error() is None, message.error()
                    values.append(message.value())
            consumer.commit(asynchronous=False)
        finally:
            consumer.close()
        return values


class KafkaPython:
    """Scripts for kafka-python."""

    def __init__(self, servers: str) -> None:
        self.base = {"bootstrap_servers": servers}

    def create_topic(self, name: str, partitions: int) -> None:
        from kafka.admin import KafkaAdminClient, NewTopic

        admin = KafkaAdminClient(**self.base)
        try:
            admin.create_topics([NewTopic(name, partitions, 1)])
            assert name in admin.list_topics()
        finally:
            admin.close()

    def produce(self, topic: str, first: int, last: int) -> None:
        from kafka import KafkaProducer

        producer = KafkaProducer(**self.base, enable_idempotence=True)
        try:
            futures = [
                producer.send(topic, b"value-%d" % number, key=b"%d" % (number % 7))
                for number in range(first, last)
            ]
            for future in futures:
                future.get(timeout=DEADLINE_S)
        finally:
            producer.close()

    def consume(self, topic: str, group: str, count: int) -> list[bytes]:
        from kafka import KafkaConsumer

        consumer = KafkaConsumer(
            topic, **self.base, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False
        )
        # Without the topic's metadata it assigns itself nothing, and sometimes leaves it at that.
        assert consumer.partitions_for_topic(topic)
        values: list[bytes] = []
        deadline = time.monotonic() + DEADLINE_S
        try:
            while len(values) < count and time.monotonic() < deadline:
                for records in consumer.poll(timeout_ms=200).values():
                    values += [record.value for record in records]
            consumer.commit()
        finally:
            consumer.close()
        return values


class AioKafka:
    """Scripts for aiokafka."""

    def __init__(self, servers: str) -> None:
        self.base = {"bootstrap_servers": servers}

    def create_topic(self, name: str, partitions: int) -> None:
        async def run() -> None:
            from aiokafka.admin import AIOKafkaAdminClient, NewTopic

            admin = AIOKafkaAdminClient(**self.base)
            await admin.start()
            try:
                await admin.create_topics([NewTopic(name, partitions, 1)])
                assert name in await admin.list_topics()
            finally:
                await admin.close()

        asyncio.run(run())

    def produce(self, topic: str, first: int, last: int) -> None:
        async def run() -> None:
            from aiokafka import AIOKafkaProducer

            async with AIOKafkaProducer(**self.base, enable_idempotence=True) as producer:
                sent = [
                    await producer.send(topic, b"value-%d" % number, key=b"%d" % (number % 7))
                    for number in range(first, last)
                ]
                await asyncio.wait_for(asyncio.gather(*sent), DEADLINE_S)

        asyncio.run(run())

    def consume(self, topic: str, group: str, count: int) -> list[bytes]:
        async def run() -> list[bytes]:
            from aiokafka import AIOKafkaConsumer

            values: list[bytes] = []
            deadline = time.monotonic() + DEADLINE_S
            async with AIOKafkaConsumer(
                topic, **self.base, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False
            ) as consumer:
                while len(values) < count and time.monotonic() < deadline:
                    for records in (await consumer.getmany(timeout_ms=200)).values():
                        values += [record.value for record in records]
                await consumer.commit()
            return values

        return asyncio.run(run())


CLIENTS = [
    pytest.param(Confluent, marks=needs("confluent_kafka"), id="confluent-kafka"),
    pytest.param(KafkaPython, marks=needs("kafka"), id="kafka-python"),
    pytest.param(AioKafka, marks=needs("aiokafka"), id="aiokafka"),
]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_reads_back_all_that_it_wrote_and_its_group_resumes_after_a_restart(
    kafka: EmbeddedKafka, client: type[Any]
) -> None:
    scripts = client(kafka.bootstrap_servers)
    scripts.create_topic("orders", 3)
    scripts.produce("orders", 0, RECORDS)
    assert sorted(scripts.consume("orders", "readers", RECORDS)) == sorted(expected(0, RECORDS))

    kafka.restart()

    scripts.produce("orders", RECORDS, 2 * RECORDS)
    resumed = scripts.consume("orders", "readers", RECORDS)
    assert sorted(resumed) == sorted(expected(RECORDS, 2 * RECORDS)), (
        "committed records came again, or new ones not"
    )


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_reads_every_codec_of_another_one_that_produces(
    kafka: EmbeddedKafka, client: type[Any]
) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    codecs = ["gzip", "snappy", "lz4", "zstd"]
    for codec in codecs:
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": kafka.bootstrap_servers, "compression.type": codec, "log_level": 0}
        )
        for number in range(50):
            producer.produce("mixed", b"%s-%d" % (codec.encode(), number) * 20)
        assert producer.flush(DEADLINE_S) == 0
    values = client(kafka.bootstrap_servers).consume("mixed", "readers", 200)
    assert sorted(values) == sorted(
        b"%s-%d" % (codec.encode(), n) * 20 for codec in codecs for n in range(50)
    )


@needs("confluent_kafka")
def test_two_librdkafka_consumers_share_a_topic_and_the_one_left_gets_all_of_it(kafka: EmbeddedKafka) -> None:
    from confluent_kafka import Consumer

    scripts = Confluent(kafka.bootstrap_servers)
    scripts.create_topic("shared", 4)
    settings = {**scripts.base, "group.id": "pair", "auto.offset.reset": "earliest"}
    one, two = Consumer(settings), Consumer(settings)
    try:
        for consumer in (one, two):
            consumer.subscribe(["shared"])
        deadline = time.monotonic() + DEADLINE_S
        while sorted(map(len, (one.assignment(), two.assignment()))) != [2, 2]:
            assert time.monotonic() < deadline, "the two never shared the partitions evenly"
            one.poll(0.1)
            two.poll(0.1)
        two.close()
        while len(one.assignment()) != 4:
            assert time.monotonic() < deadline, "the partitions of the one that left were not given on"
            one.poll(0.1)
    finally:
        one.close()
        two.close()
