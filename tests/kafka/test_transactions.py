"""Transactions before a real broker: as brokers have them now (TV2), and as they had them before Kafka 4 (TV1)."""

from __future__ import annotations

import signal
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from harness.network.proxy import FaultProxy, Rule
from harness.real_kafka.broker import RealKafka
from harness.real_kafka.cluster import RealCluster
from harness.topics import new_topic, produce, read_all
from harness.waiting import wait_until
from kclient import (
    ConsumerGroupMetadata,
    KafkaAdminClient,
    KafkaConsumer,
    KafkaProducer,
    TopicPartition,
)
from kclient.client.network_client import NetworkClient
from kclient.errors import (
    IllegalStateError,
    InvalidProducerEpochError,
    KafkaError,
    KafkaTimeoutError,
    ProducerFencedError,
    TransactionAbortableError,
    TransactionAbortedError,
)
from kclient.protocol.api_keys import ApiKeys

DEADLINE_S = 60.0


@pytest.fixture(params=["TV2", "TV1"])
def version(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The way in which the client deals with transactions: brokers go along with the older one for older clients."""
    if request.param == "TV1":
        monkeypatch.setattr(NetworkClient, "finalized_level", lambda self, feature: 0)
    name: str = request.param
    return name


def transactional(servers: str, name: str | None = None, **settings: Any) -> KafkaProducer[bytes, bytes]:
    producer = KafkaProducer(
        bootstrap_servers=servers, transactional_id=name or f"x-{uuid.uuid4().hex[:8]}", **settings
    )
    producer.init_transactions()
    return producer


def values(servers: str, topic: str, isolation: str = "read_committed") -> list[bytes | None]:
    return sorted(record.value or b"" for record in read_all(servers, topic, isolation_level=isolation))


def test_what_is_committed_is_seen_and_what_is_aborted_is_not(kafka: RealKafka, version: str) -> None:
    topic = new_topic(kafka.bootstrap_servers, 3)
    with transactional(kafka.bootstrap_servers) as producer:
        for number in range(6):
            producer.begin_transaction()
            futures = [producer.send(topic, b"%d-%d" % (number, part), partition=part) for part in range(3)]
            producer.flush()
            if number % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
            assert all(future.exception(0) is None for future in futures)
    expected = [b"%d-%d" % (number, part) for number in range(0, 6, 2) for part in range(3)]
    assert values(kafka.bootstrap_servers, topic) == expected
    assert len(values(kafka.bootstrap_servers, topic, "read_uncommitted")) == 18


def test_a_block_commits_and_one_that_raises_aborts(kafka: RealKafka, version: str) -> None:
    topic = new_topic(kafka.bootstrap_servers, 1)
    with transactional(kafka.bootstrap_servers) as producer:
        with pytest.raises(IllegalStateError, match="begin_transaction"):
            producer.send(topic, b"outside")
        with producer.transaction():
            producer.send(topic, b"in")
        lost: list[Any] = []

        def fail() -> None:
            with producer.transaction():
                lost.append(producer.send(topic, b"lost"))
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()
        assert isinstance(lost[0].exception(DEADLINE_S), TransactionAbortedError)
        with producer.transaction():
            pass
        with producer.transaction():
            producer.send_many(topic, [b"many"] * 3)
    assert values(kafka.bootstrap_servers, topic) == [b"in", b"many", b"many", b"many"]


def test_nothing_is_seen_before_the_commit(kafka: RealKafka, version: str) -> None:
    topic = new_topic(kafka.bootstrap_servers, 1)
    with (
        transactional(kafka.bootstrap_servers) as producer,
        KafkaConsumer(
            bootstrap_servers=kafka.bootstrap_servers, isolation_level="read_committed"
        ) as consumer,
    ):
        tp = TopicPartition(topic, 0)
        consumer.assign([tp])
        consumer.seek(tp, 0)
        producer.begin_transaction()
        producer.send(topic, b"a").result(DEADLINE_S)
        assert not consumer.poll(500)
        producer.commit_transaction()
        seen: list[Any] = []
        wait_until(lambda: seen.extend(consumer.poll(100)) or bool(seen), DEADLINE_S, "the record")
        assert [record.value for record in seen] == [b"a"]


def consume(consumer: KafkaConsumer[bytes, bytes], count: int) -> list[Any]:
    records: list[Any] = []
    wait_until(
        lambda: records.extend(consumer.poll(200)) or len(records) >= count, DEADLINE_S, f"{count} records"
    )
    return records


def test_offsets_are_committed_with_the_records_or_not_at_all(kafka: RealKafka, version: str) -> None:
    source, target = new_topic(kafka.bootstrap_servers, 1), new_topic(kafka.bootstrap_servers, 1)
    produce(kafka.bootstrap_servers, source, 10)
    tp = TopicPartition(source, 0)
    with (
        transactional(kafka.bootstrap_servers) as producer,
        KafkaConsumer(
            bootstrap_servers=kafka.bootstrap_servers,
            group_id=f"g-{source}",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        ) as consumer,
    ):
        consumer.subscribe([source])
        consume(consumer, 10)
        producer.begin_transaction()
        producer.send_offsets_to_transaction({tp: 4}, consumer.group_metadata())
        producer.abort_transaction()
        assert consumer.committed([tp])[tp] is None
        with producer.transaction():
            producer.send(target, b"a")
            producer.send_offsets_to_transaction({tp: 3}, consumer.group_metadata())
            producer.send_offsets_to_transaction({tp: 7}, consumer.group_metadata())
        committed = consumer.committed([tp])[tp]
        assert committed is not None
        assert committed.offset == 7
    assert values(kafka.bootstrap_servers, target) == [b"a"]


def test_a_member_that_has_lost_its_place_cannot_commit(kafka: RealKafka, version: str) -> None:
    source, target = new_topic(kafka.bootstrap_servers, 1), new_topic(kafka.bootstrap_servers, 1)
    produce(kafka.bootstrap_servers, source, 1)
    group = f"g-{source}"
    with (
        transactional(kafka.bootstrap_servers) as producer,
        KafkaConsumer(
            bootstrap_servers=kafka.bootstrap_servers,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        ) as consumer,
    ):
        consumer.subscribe([source])
        consume(consumer, 1)
        former = ConsumerGroupMetadata(group, consumer.group_metadata().generation_id, "nobody")

        def copy(value: bytes, member: ConsumerGroupMetadata) -> None:
            with producer.transaction():
                producer.send(target, value)
                producer.send_offsets_to_transaction({TopicPartition(source, 0): 1}, member)

        with pytest.raises(TransactionAbortableError):
            copy(b"lost", former)
        copy(b"kept", consumer.group_metadata())
    assert values(kafka.bootstrap_servers, target) == [b"kept"]


def test_a_newer_producer_of_the_name_fences_the_older_one(kafka: RealKafka, version: str) -> None:
    topic = new_topic(kafka.bootstrap_servers, 1)
    name = f"x-{topic}"
    with transactional(kafka.bootstrap_servers, name) as older:
        older.begin_transaction()
        older.send(topic, b"older").result(DEADLINE_S)
        with transactional(kafka.bootstrap_servers, name) as newer:
            with newer.transaction():
                newer.send(topic, b"newer")
            with pytest.raises((ProducerFencedError, TransactionAbortableError)):
                older.commit_transaction()
            for call in (older.abort_transaction, older.begin_transaction, older.init_transactions):
                with pytest.raises(ProducerFencedError):
                    call()
            with pytest.raises(ProducerFencedError):
                older.send(topic, b"late")
    assert values(kafka.bootstrap_servers, topic) == [b"newer"]


def test_the_block_of_a_fenced_producer_says_that_it_is_fenced(kafka: RealKafka, version: str) -> None:
    topic = new_topic(kafka.bootstrap_servers, 1)
    name = f"x-{topic}"

    def work_while_another_one_begins(older: KafkaProducer[bytes, bytes]) -> None:
        with older.transaction():
            older.send(topic, b"before").result(DEADLINE_S)
            transactional(kafka.bootstrap_servers, name).close()
            refused = older.send(topic, b"late")
            assert isinstance(refused.exception(DEADLINE_S), InvalidProducerEpochError)

    with transactional(kafka.bootstrap_servers, name) as older, pytest.raises(ProducerFencedError):
        work_while_another_one_begins(older)
    assert values(kafka.bootstrap_servers, topic) == []


def test_a_transaction_that_takes_too_long_is_aborted_by_the_broker(kafka: RealKafka, version: str) -> None:
    topic = new_topic(kafka.bootstrap_servers, 1)
    with transactional(kafka.bootstrap_servers, transaction_timeout_ms=1000) as producer:
        producer.begin_transaction()
        producer.send(topic, b"late").result(DEADLINE_S)
        with KafkaConsumer(
            bootstrap_servers=kafka.bootstrap_servers, isolation_level="read_committed"
        ) as consumer:
            tp = TopicPartition(topic, 0)
            consumer.assign([tp])
            consumer.seek(tp, 0)

            def passed() -> bool:
                consumer.poll(100)
                return consumer.position(tp) == 2

            # The coordinator looks every 10 s (transaction.abort.timed.out.transaction.cleanup.interval.ms).
            wait_until(passed, DEADLINE_S, "the abort")
        if version == "TV1":
            with pytest.raises(ProducerFencedError):
                producer.commit_transaction()
        else:
            with pytest.raises(TransactionAbortableError, match=r"transaction\.timeout\.ms"):
                producer.commit_transaction()
            producer.abort_transaction()
            with producer.transaction():
                producer.send(topic, b"next")
    assert values(kafka.bootstrap_servers, topic) == [b"next"] * (version == "TV2")


FAULTS: dict[str, Callable[[FaultProxy, ApiKeys], Rule]] = {
    "request-lost": lambda proxy, api: proxy.cut(api, 4, on_response=False),
    "answer-lost": lambda proxy, api: proxy.cut(api, 4),
    "answer-late": lambda proxy, api: proxy.swallow(api),
}


STEPS = [
    ApiKeys.INIT_PRODUCER_ID,
    ApiKeys.ADD_PARTITIONS_TO_TXN,
    ApiKeys.PRODUCE,
    ApiKeys.TXN_OFFSET_COMMIT,
    ApiKeys.END_TXN,
]
# Where brokers add partitions by themselves they are not asked to.
CASES = [
    (version, api)
    for version in ("TV2", "TV1")
    for api in STEPS
    if version == "TV1" or api is not ApiKeys.ADD_PARTITIONS_TO_TXN
]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(
    ("version", "api"), CASES, ids=[f"{version}-{api.name}" for version, api in CASES], indirect=["version"]
)
def test_a_lost_request_or_answer_loses_and_doubles_nothing(
    kafka: RealKafka, kafka_proxy: FaultProxy, version: str, api: ApiKeys, fault: str
) -> None:
    topic = new_topic(kafka.bootstrap_servers, 2)
    group = ConsumerGroupMetadata(f"g-{topic}")
    tp = TopicPartition(topic, 0)
    producer: KafkaProducer[bytes, bytes] = KafkaProducer(
        bootstrap_servers=kafka_proxy.bootstrap,
        transactional_id=f"x-{topic}",
        request_timeout_ms=1500,
        delivery_timeout_ms=30_000,
        retry_backoff_ms=20,
    )
    with producer:
        rule = FAULTS[fault](kafka_proxy, api)
        producer.init_transactions()
        for number in range(4):
            producer.begin_transaction()
            producer.send(topic, b"%d-0" % number, partition=0)
            producer.send(topic, b"%d-1" % number, partition=1)
            producer.send_offsets_to_transaction({tp: number}, group)
            if number == 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
        assert rule.hits == 1
    expected = [b"%d-%d" % (number, part) for number in (0, 1, 3) for part in (0, 1)]
    assert values(kafka.bootstrap_servers, topic) == expected
    with KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin:
        offsets = admin.list_consumer_group_offsets(group.group_id)
    assert offsets[tp].offset == 3


def test_a_commit_that_had_no_time_is_found_by_calling_it_again(
    kafka: RealKafka, kafka_proxy: FaultProxy, version: str
) -> None:
    topic = new_topic(kafka.bootstrap_servers, 1)
    with transactional(kafka_proxy.bootstrap, max_block_ms=500) as producer:
        producer.begin_transaction()
        producer.send(topic, b"a").result(DEADLINE_S)
        kafka_proxy.delay(ApiKeys.END_TXN, 1500)
        with pytest.raises(KafkaTimeoutError, match=r"commit_transaction\(\)"):
            producer.commit_transaction()
        with pytest.raises(IllegalStateError, match="commit_transaction"):
            producer.abort_transaction()

        def committed() -> bool:
            try:
                producer.commit_transaction()
            except KafkaTimeoutError:
                return False
            return True

        wait_until(committed, DEADLINE_S, "the commit")
        with producer.transaction():
            producer.send(topic, b"b")
    assert values(kafka.bootstrap_servers, topic) == [b"a", b"b"]


def test_a_ctrl_c_in_a_commit_leaves_the_outcome_to_the_next_call(
    kafka: RealKafka, kafka_proxy: FaultProxy, version: str
) -> None:
    topic = new_topic(kafka.bootstrap_servers, 1)
    with transactional(kafka_proxy.bootstrap) as producer:
        producer.begin_transaction()
        producer.send(topic, b"a").result(DEADLINE_S)
        delayed = kafka_proxy.delay(ApiKeys.END_TXN, 1000)

        def interrupt() -> None:
            wait_until(lambda: delayed.hits > 0, DEADLINE_S, "EndTxn")
            signal.pthread_kill(main, signal.SIGINT)

        main = threading.get_ident()
        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            producer.commit_transaction()
        thread.join()
        producer.commit_transaction()
        with producer.transaction():
            producer.send(topic, b"b")
    assert values(kafka.bootstrap_servers, topic) == [b"a", b"b"]


@pytest.mark.parametrize("version", ["TV2", pytest.param("TV1", marks=pytest.mark.soak)], indirect=True)
def test_transactions_go_on_while_coordinators_and_leaders_move(
    kafka_cluster: RealCluster, version: str
) -> None:
    servers = kafka_cluster.direct_servers
    topic = f"t-{uuid.uuid4().hex[:12]}"
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        kafka_cluster.create_topic(admin, topic, 3)
        kept: list[bytes] = []
        with transactional(servers, delivery_timeout_ms=60_000, request_timeout_ms=5000) as producer:
            for number in range(30):
                if number in {5, 15}:
                    kafka_cluster.brokers[number // 10].kill()
                if number in {10, 20}:
                    kafka_cluster.brokers[number // 10 - 1].start()
                try:
                    with producer.transaction():
                        for part in range(3):
                            producer.send(topic, b"%d-%d" % (number, part), partition=part)
                        if number % 7 == 3:
                            raise ZeroDivisionError
                except (ZeroDivisionError, TransactionAbortableError):
                    continue
                kept += [b"%d-%d" % (number, part) for part in range(3)]
        wait_until(lambda: not kafka_cluster.out_of_sync(admin), 90.0, "all replicas in sync")
    assert Counter(values(servers, topic)) == Counter(kept)


def test_the_end_of_a_producer_aborts_its_transaction_at_once(kafka: RealKafka, version: str) -> None:
    topic = new_topic(kafka.bootstrap_servers, 1)
    producer = transactional(kafka.bootstrap_servers)
    producer.begin_transaction()
    producer.send(topic, b"a").result(DEADLINE_S)
    started = time.monotonic()
    producer.close()
    assert time.monotonic() - started < DEADLINE_S
    assert values(kafka.bootstrap_servers, topic) == []
    with pytest.raises(KafkaError):
        producer.begin_transaction()


def test_a_member_that_was_removed_while_it_worked_cannot_commit(kafka: RealKafka) -> None:
    source = new_topic(kafka.bootstrap_servers, 1)
    produce(kafka.bootstrap_servers, source, 1)
    tp = TopicPartition(source, 0)
    with (
        transactional(kafka.bootstrap_servers) as producer,
        KafkaConsumer(
            bootstrap_servers=kafka.bootstrap_servers,
            group_id=f"g-{source}",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_poll_interval_ms=1000,
            session_timeout_ms=6000,
        ) as consumer,
    ):
        consumer.subscribe([source])
        consume(consumer, 1)
        before = consumer.group_metadata()
        with KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin:
            # It leaves by itself when the application does not poll for too long.
            wait_until(
                lambda: not admin.describe_groups([f"g-{source}"])[f"g-{source}"].members,
                DEADLINE_S,
                "the member to leave",
            )
        assert consumer.group_metadata() == before, "the place of its partitions, though it has none any more"
        producer.begin_transaction()
        with pytest.raises(TransactionAbortableError):
            producer.send_offsets_to_transaction({tp: 1}, consumer.group_metadata())
        producer.abort_transaction()
        consumer.unsubscribe()
        assert consumer.group_metadata() == ConsumerGroupMetadata(f"g-{source}")
