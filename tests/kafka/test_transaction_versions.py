"""Transactions before older and newer brokers than those of the other tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.real_kafka.broker import RealKafka
from harness.real_kafka.node import POM_3_9, POM_4_4, missing
from harness.requirements import skip_if
from harness.topics import new_topic, read_all
from kclient import ConsumerGroupMetadata, KafkaAdminClient, KafkaProducer, TopicPartition
from kclient.errors import ProducerFencedError, TransactionAbortableError


@pytest.mark.soak
@pytest.mark.parametrize("pom", [POM_3_9, POM_4_4], ids=["3.9.1", "4.4.0"])
def test_transactions_with_offsets_and_a_newer_producer_of_the_name(pom: Path) -> None:
    skip_if(missing())
    with RealKafka(pom=pom) as kafka:
        servers = kafka.bootstrap_servers
        topic = new_topic(servers, 2)
        tp = TopicPartition(topic, 0)
        with KafkaProducer(bootstrap_servers=servers, transactional_id="x") as older:
            older.init_transactions()
            for number in range(4):
                older.begin_transaction()
                older.send(topic, b"%d" % number, partition=number % 2).result(30)
                older.send_offsets_to_transaction({tp: number}, ConsumerGroupMetadata("g"))
                if number == 2:
                    older.abort_transaction()
                else:
                    older.commit_transaction()
            with KafkaProducer(bootstrap_servers=servers, transactional_id="x") as newer:
                newer.init_transactions()
                older.begin_transaction()
                older.send(topic, b"zombie")
                with pytest.raises((ProducerFencedError, TransactionAbortableError)):
                    older.commit_transaction()
                with newer.transaction():
                    newer.send(topic, b"new")
        records = read_all(servers, topic, isolation_level="read_committed")
        assert sorted(record.value or b"" for record in records) == [b"0", b"1", b"3", b"new"]
        with KafkaAdminClient(bootstrap_servers=servers) as admin:
            assert admin.list_consumer_group_offsets("g")[tp].offset == 3
