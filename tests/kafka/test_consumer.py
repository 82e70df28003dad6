"""The consumer before a real broker."""

from __future__ import annotations

import logging
import re

import pytest

from harness.real_kafka.broker import RealKafka
from harness.scenarios.coroutines import members_read_and_commit_what_coroutines_send
from harness.scenarios.reading import (
    know_the_lag_without_reading,
    look_up_while_a_fetch_waits,
    read_beside_a_record_that_is_too_large,
    read_from_offsets_that_do_not_exist,
)
from harness.topics import new_topic, produce
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import KafkaConsumer
from kclient.producer import KafkaProducer


def test_no_question_waits_for_records_that_do_not_come(kafka: RealKafka) -> None:
    look_up_while_a_fetch_waits(kafka.bootstrap_servers)


def test_a_record_that_no_answer_may_bring_is_told_of_and_stops_no_other_partition(kafka: RealKafka) -> None:
    read_beside_a_record_that_is_too_large(kafka.bootstrap_servers)


def test_a_lag_before_anything_is_read_ends_where_an_open_transaction_begins(kafka: RealKafka) -> None:
    servers = kafka.bootstrap_servers
    topic = new_topic(servers, 1)
    produce(servers, topic, 10)
    with KafkaProducer(bootstrap_servers=servers, transactional_id=topic) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        for _ in range(5):
            producer.send(topic, b"open")
        producer.flush()
        know_the_lag_without_reading(servers, "read_committed", topic, 10)
        know_the_lag_without_reading(servers, "read_uncommitted", topic, 15)
        producer.abort_transaction()


@pytest.mark.parametrize("policy", ["earliest", "latest", "none"])
def test_an_offset_that_does_not_exist_is_reset_or_raised(kafka: RealKafka, policy: str) -> None:
    read_from_offsets_that_do_not_exist(kafka.bootstrap_servers, policy)


def test_coroutines_of_one_loop_send_read_and_commit(kafka: RealKafka) -> None:
    members_read_and_commit_what_coroutines_send(kafka.bootstrap_servers)


@pytest.mark.parametrize("assigned", [False, True])
def test_a_topic_that_does_not_exist_is_warned_of_once(
    kafka: RealKafka, caplog: pytest.LogCaptureFixture, assigned: bool
) -> None:
    # Brokers create topics here; what the client must not ask for stays missing.
    topic = new_topic(kafka.bootstrap_servers, 1)
    typo = f"{topic}-typo"
    produce(kafka.bootstrap_servers, topic, 1)
    with KafkaConsumer(
        bootstrap_servers=kafka.bootstrap_servers,
        group_id=topic,
        auto_offset_reset="earliest",
        allow_auto_create_topics=False,
    ) as consumer:
        caplog.clear()
        if assigned:
            consumer.assign([TopicPartition(topic, 0), TopicPartition(typo, 0)])
        else:
            consumer.subscribe([topic, typo])
        assert len(consumer.poll(30_000)) == 1
        consumer.poll(1500)
    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) == 1
    assert f"{typo!r} does not exist" in warnings[0]


def test_a_healthy_start_says_nothing_of_starting_again(
    kafka: RealKafka, caplog: pytest.LogCaptureFixture
) -> None:
    topic = new_topic(kafka.bootstrap_servers, 3)
    with caplog.at_level(logging.INFO):
        with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
            for number in range(30):
                producer.send(topic, b"", partition=number % 3)
            producer.flush()
            producer.send(f"{topic}-created", b"").result(30)
        with KafkaConsumer(
            bootstrap_servers=kafka.bootstrap_servers, group_id=topic, auto_offset_reset="earliest"
        ) as consumer:
            consumer.subscribe([topic])
            seen = 0
            while seen < 30:
                seen += len(consumer.poll(10_000))
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.INFO]
    assert said
    # Retries are said of, too, where the topic is so new that its leader has not heard of it.
    assert not [each for each in said if re.search(r"[Ss]tart\w* (again|anew)", each)]
