"""Transactions before older and newer brokers than those of the other tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from harness.broker.wire import Wire
from harness.network.proxy import FaultProxy, Rule
from harness.real_kafka.broker import RealKafka
from harness.real_kafka.node import POM_2_8, POM_3_9, POM_4_4, missing
from harness.real_kafka.zookeeper import zookeeper
from harness.requirements import skip_if
from harness.topics import new_topic, produce, read_all
from harness.waiting import wait_until
from kclient import (
    ConsumerGroupMetadata,
    KafkaAdminClient,
    KafkaConsumer,
    KafkaProducer,
    TopicPartition,
)
from kclient.admin import AbortTransactionSpec
from kclient.errors import (
    ErrorCode,
    InvalidProducerEpochError,
    KafkaError,
    KafkaTimeoutError,
    ProducerFencedError,
    RecordTooLargeError,
    TransactionAbortableError,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.end_txn import EndTxnRequest

pytestmark = pytest.mark.soak

DEADLINE_S = 60.0
# Seconds between two looks for transactions that take too long are the default.
SOON = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200"}


POMS = {"2.8.2": POM_2_8, "3.9.1": POM_3_9, "4.4.0": POM_4_4}


@pytest.fixture(scope="module", params=POMS)
def release(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def adds_by_itself(release: str) -> bool:
    """True if brokers of this release make partitions part of a transaction, and end it with a new epoch (KIP-890)."""
    return release >= "4"


@pytest.fixture(scope="module")
def broker(release: str) -> Iterator[RealKafka]:
    skip_if(missing())
    with ExitStack() as stack:
        address = stack.enter_context(zookeeper()) if release < "3" else None
        yield stack.enter_context(RealKafka(pom=POMS[release], zookeeper=address, settings=SOON))


@pytest.fixture
def proxy(broker: RealKafka) -> Iterator[FaultProxy]:
    with FaultProxy(("127.0.0.1", broker.behind_proxy_port), port=broker.proxy_port) as running:
        yield running


def transactional(servers: str, name: str, **settings: Any) -> KafkaProducer[bytes, bytes]:
    producer = KafkaProducer(bootstrap_servers=servers, transactional_id=name, **settings)
    producer.init_transactions()
    return producer


def values(broker: RealKafka, topic: str, isolation: str = "read_committed") -> list[bytes]:
    records = read_all(broker.bootstrap_servers, topic, isolation_level=isolation)
    return sorted(record.value or b"" for record in records)


def test_records_and_offsets_are_there_with_the_commit_and_never_after_an_abort(broker: RealKafka) -> None:
    servers = broker.bootstrap_servers
    topic = new_topic(servers, 2)
    tp, group = TopicPartition(topic, 0), f"g-{topic}"
    with transactional(servers, topic) as producer, KafkaAdminClient(bootstrap_servers=servers) as admin:
        for number in range(4):
            producer.begin_transaction()
            producer.send(topic, b"%d" % number, partition=number % 2).result(DEADLINE_S)
            producer.send_offsets_to_transaction({tp: number}, ConsumerGroupMetadata(group))
            if number == 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
        assert values(broker, topic) == [b"0", b"1", b"3"]
        assert values(broker, topic, "read_uncommitted") == [b"0", b"1", b"2", b"3"]
        assert admin.list_consumer_group_offsets(group)[tp].offset == 3


def test_an_open_transaction_holds_back_what_was_written_behind_it(broker: RealKafka) -> None:
    servers = broker.bootstrap_servers
    topic = new_topic(servers, 1)
    tp = TopicPartition(topic, 0)
    with (
        transactional(servers, topic) as producer,
        KafkaConsumer(bootstrap_servers=servers, isolation_level="read_committed") as consumer,
    ):
        consumer.assign([tp])
        consumer.seek(tp, 0)
        producer.begin_transaction()
        producer.send(topic, b"open").result(DEADLINE_S)
        produce(servers, topic, 1)
        assert not consumer.poll(300)
        producer.abort_transaction()
        seen: list[Any] = []
        wait_until(lambda: seen.extend(consumer.poll(100)) or bool(seen), DEADLINE_S, "the record")
        assert [record.value for record in seen] == [b"v0"]


def test_a_member_that_has_lost_its_place_cannot_commit(broker: RealKafka) -> None:
    servers = broker.bootstrap_servers
    source, target = new_topic(servers, 1), new_topic(servers, 1)
    produce(servers, source, 1)
    tp, group = TopicPartition(source, 0), f"g-{source}"
    with (
        transactional(servers, target) as producer,
        KafkaConsumer(
            bootstrap_servers=servers,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        ) as consumer,
    ):
        consumer.subscribe([source])
        wait_until(lambda: bool(consumer.poll(100)), DEADLINE_S, "the record")
        member = consumer.group_metadata()

        def copy(value: bytes, member: ConsumerGroupMetadata) -> None:
            with producer.transaction():
                producer.send(target, value)
                producer.send_offsets_to_transaction({tp: 1}, member)

        with pytest.raises(TransactionAbortableError):
            copy(b"lost", ConsumerGroupMetadata(group, member.generation_id, "nobody"))
        with pytest.raises(TransactionAbortableError):
            copy(b"late", ConsumerGroupMetadata(group, member.generation_id - 1, member.member_id))
        assert consumer.committed([tp])[tp] is None
        copy(b"kept", member)
    assert values(broker, target) == [b"kept"]


CALLS: dict[str, Callable[[KafkaProducer[bytes, bytes], str], object]] = {
    "commit": lambda producer, topic: producer.commit_transaction(),
    "abort": lambda producer, topic: producer.abort_transaction(),
    "offsets": lambda producer, topic: producer.send_offsets_to_transaction(
        {TopicPartition(topic, 0): 1}, ConsumerGroupMetadata(f"g-{topic}")
    ),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_newer_producer_of_the_name_ends_the_transaction_of_the_older_one(
    broker: RealKafka, call: str
) -> None:
    servers = broker.bootstrap_servers
    topic = new_topic(servers, 1)
    with transactional(servers, topic) as older:
        older.begin_transaction()
        older.send(topic, b"older").result(DEADLINE_S)
        with transactional(servers, topic) as newer:
            newer.begin_transaction()
            newer.send(topic, b"newer").result(DEADLINE_S)
            with pytest.raises(ProducerFencedError):
                CALLS[call](older, topic)
            newer.commit_transaction()
        with pytest.raises(ProducerFencedError):
            older.begin_transaction()
    assert values(broker, topic) == [b"newer"]
    assert values(broker, topic, "read_uncommitted") == [b"newer", b"older"]


def test_what_a_fenced_producer_sends_is_refused(broker: RealKafka, adds_by_itself: bool) -> None:
    servers = broker.bootstrap_servers
    topic = new_topic(servers, 1)
    with (
        transactional(servers, f"{topic}-open") as midway,
        transactional(servers, f"{topic}-ready") as ready,
    ):
        midway.begin_transaction()
        midway.send(topic, b"before").result(DEADLINE_S)
        for name in ("open", "ready"):
            transactional(servers, f"{topic}-{name}").close()
        assert isinstance(midway.send(topic, b"late").exception(DEADLINE_S), InvalidProducerEpochError)
        with pytest.raises(TransactionAbortableError):
            midway.commit_transaction()
        with pytest.raises(ProducerFencedError):
            midway.abort_transaction()
        ready.begin_transaction()
        # Before Kafka 4 the coordinator is asked first, and knows better than the partition's leader why.
        expected = InvalidProducerEpochError if adds_by_itself else ProducerFencedError
        assert isinstance(ready.send(topic, b"late").exception(DEADLINE_S), expected)
    assert values(broker, topic, "read_uncommitted") == [b"before"]


def refused(proxy: FaultProxy, producer: KafkaProducer[bytes, bytes], topic: str) -> type[KafkaError]:
    """Send what the broker refuses; its error."""
    producer.send(topic, b"x" * 5000)
    return RecordTooLargeError


def unanswered(proxy: FaultProxy, producer: KafkaProducer[bytes, bytes], topic: str) -> type[KafkaError]:
    """Send what nobody says anything about before its time is over; its error."""
    proxy.swallow(ApiKeys.PRODUCE, times=20)
    producer.send(topic, b"unanswered")
    return KafkaTimeoutError


def identity(admin: KafkaAdminClient, tp: TopicPartition) -> tuple[int, int]:
    """Producer id and epoch of the only producer that has written to a partition."""
    (found,) = admin.describe_producers([tp])[tp].active_producers
    return found.producer_id, found.producer_epoch


@pytest.mark.parametrize("send_in_vain", [refused, unanswered])
def test_a_batch_that_failed_costs_a_transaction_and_an_epoch_but_not_the_producer(
    broker: RealKafka, proxy: FaultProxy, send_in_vain: Callable[..., type[KafkaError]]
) -> None:
    servers = broker.bootstrap_servers
    topic = new_topic(servers, 1, max_message_bytes="1000")
    tp = TopicPartition(topic, 0)
    with (
        KafkaAdminClient(bootstrap_servers=servers) as admin,
        transactional(
            proxy.bootstrap, topic, delivery_timeout_ms=1500, request_timeout_ms=500, retry_backoff_ms=20
        ) as producer,
    ):
        with producer.transaction():
            producer.send(topic, b"before")
        producer_id, epoch = identity(admin, tp)
        producer.begin_transaction()
        producer.send(topic, b"with it").result(DEADLINE_S)
        expected = send_in_vain(proxy, producer, topic)
        with pytest.raises(TransactionAbortableError) as caught:
            producer.commit_transaction()
        assert isinstance(caught.value.__cause__, expected)
        proxy.clear()
        producer.abort_transaction()
        with producer.transaction():
            producer.send(topic, b"after")
        now_id, now = identity(admin, tp)
        assert now_id == producer_id
        assert now > epoch, "what is still on its way could come with the present epoch"
    assert values(broker, topic) == [b"after", b"before"]


FAULTS: dict[str, Callable[[FaultProxy, ApiKeys], Rule]] = {
    "answer-lost": lambda proxy, api: proxy.cut(api, 4),
    "answer-late": lambda proxy, api: proxy.swallow(api),
}
STEPS = [
    ApiKeys.INIT_PRODUCER_ID,
    ApiKeys.ADD_PARTITIONS_TO_TXN,
    ApiKeys.PRODUCE,
    ApiKeys.ADD_OFFSETS_TO_TXN,
    ApiKeys.TXN_OFFSET_COMMIT,
    ApiKeys.END_TXN,
]
OF_OLDER_BROKERS = {ApiKeys.ADD_PARTITIONS_TO_TXN, ApiKeys.ADD_OFFSETS_TO_TXN}


@pytest.mark.parametrize("fault", FAULTS)
def test_an_answer_that_is_lost_at_any_step_loses_and_doubles_nothing(
    broker: RealKafka, adds_by_itself: bool, proxy: FaultProxy, fault: str
) -> None:
    servers = broker.bootstrap_servers
    topic = new_topic(servers, 1)
    tp, group = TopicPartition(topic, 0), ConsumerGroupMetadata(f"g-{topic}")
    steps = [api for api in STEPS if not (api in OF_OLDER_BROKERS and adds_by_itself)]
    kept: list[bytes] = []
    for api in steps:
        rule = FAULTS[fault](proxy, api)
        with transactional(
            proxy.bootstrap, topic, request_timeout_ms=500, delivery_timeout_ms=30_000, retry_backoff_ms=20
        ) as producer:
            for number in range(3):
                value = b"%s-%d" % (api.name.encode(), number)
                producer.begin_transaction()
                producer.send(topic, value)
                producer.send_offsets_to_transaction({tp: len(kept)}, group)
                if number == 1:
                    producer.abort_transaction()
                    continue
                producer.commit_transaction()
                kept.append(value)
        assert rule.hits == 1
    assert values(broker, topic) == sorted(kept)
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        assert admin.list_consumer_group_offsets(group.group_id)[tp].offset == len(kept) - 1


def test_a_commit_that_arrives_again_later_does_not_end_the_next_transaction(
    broker: RealKafka, proxy: FaultProxy
) -> None:
    """KAFKA-17754, where a request without an answer was on its way twice."""
    servers = broker.bootstrap_servers
    topic = new_topic(servers, 1)
    with (
        KafkaAdminClient(bootstrap_servers=servers) as admin,
        transactional(proxy.bootstrap, topic, request_timeout_ms=500, retry_backoff_ms=20) as producer,
    ):
        producer.begin_transaction()
        producer.send(topic, b"first").result(DEADLINE_S)
        producer_id, epoch = identity(admin, TopicPartition(topic, 0))
        unanswered = proxy.swallow(ApiKeys.END_TXN)
        producer.commit_transaction()
        assert unanswered.hits == 1
        producer.begin_transaction()
        producer.send(topic, b"second").result(DEADLINE_S)
        again = EndTxnRequest(
            transactional_id=topic, producer_id=producer_id, producer_epoch=epoch, committed=True
        )
        with Wire(servers) as wire:
            answer = wire.ask(again, 3)
        assert answer.error_code in {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH}
        producer.abort_transaction()
    assert values(broker, topic) == [b"first"]


def test_a_transaction_is_found_on_its_partition_and_aborted_there(broker: RealKafka) -> None:
    servers = broker.bootstrap_servers
    topic = new_topic(servers, 1)
    tp = TopicPartition(topic, 0)
    with transactional(servers, topic) as producer, KafkaAdminClient(bootstrap_servers=servers) as admin:
        producer.begin_transaction()
        producer.send(topic, b"open").result(DEADLINE_S)
        (found,) = admin.describe_producers([tp])[tp].active_producers
        assert found.current_transaction_start_offset == 0
        admin.abort_transaction(AbortTransactionSpec(tp, found.producer_id, found.producer_epoch))
        (found,) = admin.describe_producers([tp])[tp].active_producers
        assert found.current_transaction_start_offset is None
        produce(servers, topic, 1)
        assert values(broker, topic) == [b"v0"], "readers are not held back"


def test_a_transaction_that_takes_too_long_is_aborted_by_the_broker(
    broker: RealKafka, adds_by_itself: bool
) -> None:
    servers = broker.bootstrap_servers
    topic = new_topic(servers, 1)
    tp = TopicPartition(topic, 0)
    with (
        transactional(servers, topic, transaction_timeout_ms=500) as producer,
        KafkaConsumer(bootstrap_servers=servers, isolation_level="read_committed") as consumer,
    ):
        producer.begin_transaction()
        producer.send(topic, b"late").result(DEADLINE_S)
        consumer.assign([tp])
        consumer.seek(tp, 0)

        def passed() -> bool:
            assert not consumer.poll(50)
            return consumer.position(tp) == 2

        wait_until(passed, DEADLINE_S, "the abort")
        if adds_by_itself:
            with pytest.raises(TransactionAbortableError, match=r"transaction\.timeout\.ms"):
                producer.commit_transaction()
            producer.abort_transaction()
        else:
            with pytest.raises(ProducerFencedError, match=r"transaction\.timeout\.ms"):
                producer.commit_transaction()
            producer.close()
            producer = transactional(servers, topic)
        with producer, producer.transaction():
            producer.send(topic, b"next")
    assert values(broker, topic) == [b"next"]
