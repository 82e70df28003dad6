"""Single requests refused and answered by a proxy before a real broker: what the log has, and what futures say."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from harness.network.produce_answers import refuse, refuse_batches
from harness.network.proxy import FaultProxy
from harness.real_kafka.broker import RealKafka
from harness.topics import new_topic, read_all
from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient, NewTopic
from kclient.errors import ErrorCode, KafkaError, KafkaTimeoutError
from kclient.producer import KafkaProducer
from kclient.protocol.api_keys import ApiKeys

REFUSALS = [ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_LEADER_OR_FOLLOWER]


def producer(proxy: FaultProxy, **settings: Any) -> KafkaProducer[bytes, bytes]:
    """Each record is a batch of its own, and is sent again at once."""
    defaults: dict[str, Any] = {
        "linger_ms": 0,
        "batch_size": 0,
        "retry_backoff_ms": 20,
        "retry_backoff_max_ms": 50,
    }
    return KafkaProducer(bootstrap_servers=proxy.bootstrap, **{**defaults, **settings})


def values(kafka: RealKafka, topic: str) -> list[bytes | None]:
    return [record.value for record in read_all(kafka.bootstrap_servers, topic)]


def refuse_once(proxy: FaultProxy, value: bytes, code: int) -> None:
    """Refuse the first batch with `value` that comes along."""
    proxy.answer(
        ApiKeys.PRODUCE, refuse_batches(lambda of_batch: code if of_batch == [value] else None), times=1
    )


def assert_told_as_it_is(kafka: RealKafka, topic: str, sent: dict[bytes, Any]) -> None:
    """Every record that succeeded is in the log once and in order, and of the others none that is said not to be."""
    log = [value for value in values(kafka, topic) if value in sent]
    assert len(log) == len(set(log))
    assert log == [value for value in sent if value in log]
    for value, future in sent.items():
        error = future.exception(60)
        if error is None:
            assert value in log, f"{value!r} was acknowledged at offset {future.result(0).offset}"
        elif value in log:
            assert "may have been written" in str(error)


@pytest.mark.parametrize("code", REFUSALS)
def test_a_record_that_is_refused_once_is_written_once(
    kafka: RealKafka, kafka_proxy: FaultProxy, code: int
) -> None:
    topic = new_topic(kafka.bootstrap_servers, 1)
    rule = kafka_proxy.answer(ApiKeys.PRODUCE, refuse(code))
    with producer(kafka_proxy) as made:
        assert made.send(topic, b"r1").result(30).offset == 0
    assert rule.hits == 1
    assert values(kafka, topic) == [b"r1"]


@pytest.mark.parametrize("code", REFUSALS)
def test_no_record_is_lost_when_the_first_one_of_a_recreated_topic_is_refused(
    kafka: RealKafka, kafka_proxy: FaultProxy, code: int
) -> None:
    topic = new_topic(kafka.bootstrap_servers, 1)
    with (
        producer(kafka_proxy, metadata_max_age_ms=200) as made,
        KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin,
    ):
        made.send(topic, b"old").result(30)
        metadata = made._core.metadata
        old_id = metadata.topic_id(topic)
        admin.delete_topics([topic])
        wait_until(lambda: topic not in admin.list_topics())
        admin.create_topics([NewTopic(topic, 1, 1)])
        wait_until(lambda: metadata.topic_id(topic) not in {None, old_id})
        refuse_once(kafka_proxy, b"r1", code)
        kafka_proxy.delay(ApiKeys.PRODUCE, 500)
        sent = {value: made.send(topic, value) for value in (b"r1", b"r2", b"r3")}
        made.flush(60_000)
    assert [future.exception(0) for future in sent.values()] == [None] * 3
    assert_told_as_it_is(kafka, topic, sent)


@pytest.fixture
def short_memory(kafka: RealKafka) -> Iterator[None]:
    """The broker forgets producers that are silent for a second."""
    where = ("--bootstrap-server", kafka.bootstrap_servers, "--alter", "--entity-type", "brokers")
    what = "producer.id.expiration.ms"
    kafka.tool("kafka.admin.ConfigCommand", *where, "--entity-default", "--add-config", f"{what}=1000")
    yield
    kafka.tool("kafka.admin.ConfigCommand", *where, "--entity-default", "--delete-config", what)


def is_forgotten(kafka: RealKafka, topic: str) -> bool:
    """Return True if the broker knows no producer of the topic's only partition."""
    printed = kafka.tool(
        "org.apache.kafka.tools.TransactionsCommand",
        *("--bootstrap-server", kafka.bootstrap_servers),
        *("describe-producers", "--topic", topic, "--partition", "0"),
    )
    return len(printed.strip().splitlines()) == 1


@pytest.mark.usefixtures("short_memory")
def test_a_refused_record_never_succeeds_where_the_broker_has_forgotten_the_producer(
    kafka: RealKafka, kafka_proxy: FaultProxy
) -> None:
    topics = {code: new_topic(kafka.bootstrap_servers, 1) for code in REFUSALS}
    with producer(kafka_proxy) as made:
        for topic in topics.values():
            made.send(topic, b"r0").result(30)
        wait_until(lambda: all(is_forgotten(kafka, topic) for topic in topics.values()), 60)
        for code, topic in topics.items():
            refuse_once(kafka_proxy, b"r1", code)
            # The refusal is held back until the second is on its way behind the first.
            kafka_proxy.delay(ApiKeys.PRODUCE, 1000)
            sent = {value: made.send(topic, value) for value in (b"r1", b"r2")}
            made.flush(60_000)
            assert isinstance(sent[b"r1"].exception(0), KafkaError)
            assert values(kafka, topic) == [b"r0", b"r2"]
            assert_told_as_it_is(kafka, topic, sent)


def test_what_a_demoted_leader_has_is_not_written_again_when_the_record_before_it_expires(
    kafka: RealKafka, kafka_proxy: FaultProxy
) -> None:
    topic = new_topic(kafka.bootstrap_servers, 1)
    with producer(kafka_proxy, delivery_timeout_ms=3000, request_timeout_ms=2000) as made:
        made.send(topic, b"r0").result(30)
        demoted = refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        written = kafka_proxy.answer(ApiKeys.PRODUCE, demoted, times=2, pass_on=True)
        refused = kafka_proxy.answer(ApiKeys.PRODUCE, demoted, times=-1)
        kafka_proxy.delay(ApiKeys.PRODUCE, 1500)
        started = time.monotonic()
        r1 = made.send(topic, b"r1")
        # The second expires later than the first, and is on its way before that is answered.
        wait_until(lambda: time.monotonic() > started + 1)
        r2 = made.send(topic, b"r2")
        assert isinstance(r1.exception(30), KafkaTimeoutError)
        refused.times = refused.hits
        made.flush(30_000)
        assert written.hits == 2
        assert "may have been written" in str(r1.exception(0))
        assert r2.exception(0) is None
        assert values(kafka, topic) == [b"r0", b"r1", b"r2"]
