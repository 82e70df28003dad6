"""A pipeline of which Java's TransactionalMessageCopier and kclient are a part each."""

from __future__ import annotations

import random

import pytest

from harness.real_kafka.broker import RealKafka
from harness.topics import new_topic, produce, read_all
from kclient import KafkaConsumer, KafkaProducer, TopicPartition

_COUNT = 300


def _java_copies(kafka: RealKafka, source: str, target: str, name: str) -> None:
    kafka.tool(
        "org.apache.kafka.tools.TransactionalMessageCopier",
        *("--broker-list", kafka.bootstrap_servers, "--consumer-group", name, "--transactional-id", name),
        *("--input-topic", source, "--input-partition", "0", "--output-topic", target),
        *("--transaction-size", "20", "--max-messages", str(_COUNT)),
        *("--enable-random-aborts", "--use-group-metadata"),
    )


def _kclient_copies(kafka: RealKafka, source: str, target: str, name: str) -> int:
    """Copy in transactions of which some are aborted on purpose; their number."""
    chance = random.Random(1)
    servers = kafka.bootstrap_servers
    aborted = copied = 0
    tp = TopicPartition(source, 0)
    with (
        KafkaProducer(bootstrap_servers=servers, transactional_id=name) as producer,
        KafkaConsumer(
            bootstrap_servers=servers,
            group_id=name,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_poll_records=20,
        ) as consumer,
    ):
        producer.init_transactions()
        consumer.subscribe([source])
        while copied < _COUNT:
            records = list(consumer.poll(500))
            if not records:
                continue
            producer.begin_transaction()
            for record in records:
                producer.send(target, record.value, key=record.key)
            producer.send_offsets_to_transaction({tp: records[-1].offset + 1}, consumer.group_metadata())
            if chance.random() < 0.3:
                producer.abort_transaction()
                aborted += 1
                consumer.seek(tp, records[0].offset)
            else:
                producer.commit_transaction()
                copied += len(records)
    return aborted


@pytest.mark.parametrize("first", ["java", "kclient"])
def test_each_record_comes_out_once_and_in_order(kafka: RealKafka, first: str) -> None:
    servers = kafka.bootstrap_servers
    source, between, target = (new_topic(servers, 1) for _ in range(3))
    produce(servers, source, _COUNT)
    aborted = 0
    for copies, (of, to) in zip(
        ("java", "kclient") if first == "java" else ("kclient", "java"),
        ((source, between), (between, target)),
        strict=True,
    ):
        if copies == "java":
            _java_copies(kafka, of, to, f"java-{of}")
        else:
            aborted += _kclient_copies(kafka, of, to, f"kclient-{of}")
    assert aborted, "nothing was put to the test"
    records = read_all(servers, target, isolation_level="read_committed")
    assert [record.value for record in records] == [b"v%d" % i for i in range(_COUNT)]
