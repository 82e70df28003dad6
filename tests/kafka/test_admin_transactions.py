"""Transactions of another client on a real broker: seen, fenced and aborted, and those that hang found.

The broker does not verify that a coordinator knows what is written, so that a transaction can be made to hang.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import pytest

from harness.consumer.fetched_batches import batch
from harness.network.driven_client import DrivenClient
from harness.real_kafka.broker import RealKafka, missing
from harness.real_kafka.cluster import RealCluster
from harness.requirements import skip_if
from harness.topics import new_topic
from harness.waiting import wait_until
from kclient.admin import (
    AbortTransactionSpec,
    AlterConfigOp,
    ConfigResource,
    ConfigResourceType,
    FencedProducer,
    KafkaAdminClient,
    NewTopic,
    OffsetSpec,
    ProducerState,
    TransactionState,
)
from kclient.cli.main import main
from kclient.common.topic_partition import TopicPartition
from kclient.errors import (
    AdminError,
    Errors,
    InvalidProducerEpochError,
    InvalidRegularExpressionError,
    KafkaTimeoutError,
    NotLeaderOrFollowerError,
    TransactionalIdNotFoundError,
    UnknownTopicOrPartitionError,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

pytestmark = pytest.mark.peers

_LAST_PRODUCE_WITHOUT_ADDING = 11
"""From the next version on a broker tells the coordinator of every partition that is written to (KIP-890)."""

Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def broker() -> Iterator[RealKafka]:
    skip_if(missing())
    with RealKafka(settings={"transaction.partition.verification.enable": "false"}) as running:
        yield running


@pytest.fixture(scope="module")
def admin(broker: RealKafka) -> Iterator[KafkaAdminClient]:
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as made:
        yield made


@pytest.fixture
def tp(broker: RealKafka) -> TopicPartition:
    return TopicPartition(new_topic(broker.bootstrap_servers, 2), 0)


@attrs.frozen
class Transaction:
    """An open transaction of confluent-kafka's producer, with one record."""

    id: str
    producer: Any
    first: TopicPartition

    def write(self, value: bytes = b"v") -> None:
        self.producer.produce(self.first.topic, value, partition=self.first.partition)
        self.producer.flush(30)


Begin = Callable[..., Transaction]


@pytest.fixture
def begin() -> Iterator[Begin]:
    """Begins transactions, which end with the test."""
    skip_if(None if importlib.util.find_spec("confluent_kafka") else "confluent-kafka is not installed")
    from confluent_kafka import KafkaException, Producer

    begun: list[Transaction] = []

    def make(servers: str, tp: TopicPartition) -> Transaction:
        name = f"x-{uuid.uuid4().hex[:12]}"
        producer = Producer({"bootstrap.servers": servers, "transactional.id": name, "log_level": 0})
        producer.init_transactions(30)
        producer.begin_transaction()
        begun.append(Transaction(name, producer, tp))
        begun[-1].write()
        return begun[-1]

    yield make
    for transaction in begun:
        with contextlib.suppress(KafkaException):  # it was fenced, or has committed
            transaction.producer.abort_transaction(30)


def hang(broker: RealKafka, tp: TopicPartition, producer_id: int, transactional_id: str) -> int:
    """Write two records of a transaction that its coordinator does not hear of; the first offset."""
    records = batch(0, 2, producer_id=producer_id, producer_epoch=0, base_sequence=0, is_transactional=True)
    partition = PartitionProduceData(index=tp.partition, records=records)
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(name=tp.topic, partition_data=[partition])],
    )
    with DrivenClient(broker.bootstrap_servers) as client:
        response = client.call(request, node_id=1, max_version=_LAST_PRODUCE_WITHOUT_ADDING)
        response.raise_if_failed()
    (written,) = response.message.responses[0].partition_responses
    assert written.error_code == Errors.NONE, written
    offset: int = written.base_offset
    return offset


def producers(admin: KafkaAdminClient, tp: TopicPartition) -> tuple[ProducerState, ...]:
    return admin.describe_producers([tp])[tp].active_producers


def committed_end(admin: KafkaAdminClient, tp: TopicPartition) -> int:
    """The end of what consumers with read_committed can read."""
    return admin.list_offsets({tp: OffsetSpec.LATEST}, isolation_level="read_committed")[tp].offset


def kclient(broker: RealKafka, *words: str) -> int:
    return main(["transactions", "--bootstrap-server", broker.bootstrap_servers, *words])


def rows(text: str) -> list[list[str]]:
    """The lines of a table without the header; cells as Kafka's tool writes those that are empty."""
    empty = {"-": "None", "": "None", "-1": "None"}
    return sorted(
        [empty.get(cell.strip(), cell.strip()) for cell in line.removesuffix("\t").split("\t")]
        for line in text.splitlines()[1:]
        if line.strip()
    )


def of_java(broker: RealKafka, *words: str) -> list[list[str]]:
    """The table that Kafka's own tool prints."""
    at = ("--bootstrap-server", broker.bootstrap_servers)
    return rows(broker.tool("org.apache.kafka.tools.TransactionsCommand", *at, *words))


def test_an_open_transaction_is_listed_and_described(
    broker: RealKafka, admin: KafkaAdminClient, begin: Begin, tp: TopicPartition
) -> None:
    before_ms = time.time_ns() // 1_000_000 - 60_000
    transaction = begin(broker.bootstrap_servers, tp)
    listed = admin.list_transactions()[transaction.id]
    assert (listed.state, listed.coordinator_id) == (TransactionState.ONGOING, 1)
    described = admin.describe_transactions([transaction.id])[transaction.id]
    assert (described.state, described.coordinator_id) == (TransactionState.ONGOING, 1)
    assert (described.producer_id, described.producer_epoch) == (listed.producer_id, 0)
    assert (described.transaction_timeout_ms, described.topic_partitions) == (60_000, {tp})
    assert described.transaction_start_time_ms is not None
    assert described.transaction_start_time_ms > before_ms
    transaction.producer.commit_transaction(30)

    def ended() -> bool:
        found = admin.describe_transactions([transaction.id])[transaction.id]
        return found.state is TransactionState.COMPLETE_COMMIT and not found.topic_partitions

    wait_until(ended, 30, "its end")


def test_list_transactions_takes_every_filter(
    broker: RealKafka, admin: KafkaAdminClient, begin: Begin, tp: TopicPartition
) -> None:
    name = begin(broker.bootstrap_servers, tp).id
    producer_id = admin.list_transactions()[name].producer_id
    others = admin.list_transactions(states=[state for state in TransactionState if state != "Ongoing"])
    assert name in admin.list_transactions(states=["Ongoing"])
    assert name not in others
    assert list(admin.list_transactions(producer_ids=[producer_id, 2**62])) == [name]
    assert name in admin.list_transactions(duration_ms=0)
    assert name not in admin.list_transactions(duration_ms=3_600_000)
    assert list(admin.list_transactions(transactional_id_pattern=f"{name[:-1]}.")) == [name]
    assert admin.list_transactions(transactional_id_pattern=name[:-1]) == {}
    with pytest.raises(InvalidRegularExpressionError, match="failed for broker 1"):
        admin.list_transactions(transactional_id_pattern="(")


def test_describe_transactions_names_the_id_that_does_not_exist(admin: KafkaAdminClient) -> None:
    with pytest.raises(TransactionalIdNotFoundError, match="failed for nobody-1"):
        admin.describe_transactions(["nobody-1"])
    admin.fence_producers(["somebody"])
    with pytest.raises(AdminError, match="nobody-1: ") as failed:
        admin.describe_transactions(["nobody-1", "somebody"])
    assert failed.value.results["somebody"].state is TransactionState.EMPTY


def test_producers_of_partitions_are_described(
    broker: RealKafka, admin: KafkaAdminClient, begin: Begin, tp: TopicPartition
) -> None:
    transaction = begin(broker.bootstrap_servers, tp)
    described = admin.describe_transactions([transaction.id])[transaction.id]
    empty = TopicPartition(tp.topic, 1)
    found = admin.describe_producers([tp, empty])
    assert found[empty].active_producers == ()
    (state,) = found[tp].active_producers
    assert (state.producer_id, state.producer_epoch) == (described.producer_id, described.producer_epoch)
    assert (state.last_sequence, state.coordinator_epoch) == (0, None)
    assert state.current_transaction_start_offset == 0
    assert admin.describe_producers([tp], broker_id=1)[tp].active_producers == (state,)
    transaction.producer.commit_transaction(30)
    wait_until(lambda: producers(admin, tp)[0].current_transaction_start_offset is None, 30, "the marker")
    assert producers(admin, tp)[0].coordinator_epoch is not None


def test_describe_producers_names_the_partition_and_the_broker_that_are_not_there(
    admin: KafkaAdminClient, tp: TopicPartition
) -> None:
    with pytest.raises(UnknownTopicOrPartitionError, match=f"failed for {tp.topic}-9"):
        admin.describe_producers([TopicPartition(tp.topic, 9)])
    with pytest.raises(UnknownTopicOrPartitionError, match=f"failed for {tp.topic}-9"):
        admin.describe_producers([TopicPartition(tp.topic, 9)], broker_id=1)
    with pytest.raises(KafkaTimeoutError, match="DESCRIBE_PRODUCERS was never sent: broker 7 could not be"):
        admin.describe_producers([tp], broker_id=7, timeout_ms=1000)


def test_a_transaction_that_hangs_is_aborted_and_readers_go_on(
    broker: RealKafka, admin: KafkaAdminClient, tp: TopicPartition
) -> None:
    hang(broker, tp, 1_000_001, "hanging")
    assert committed_end(admin, tp) == 0
    (state,) = producers(admin, tp)
    assert state.current_transaction_start_offset == 0
    admin.abort_transaction(
        AbortTransactionSpec(tp, state.producer_id, state.producer_epoch, state.coordinator_epoch)
    )
    (state,) = producers(admin, tp)
    assert (state.current_transaction_start_offset, state.coordinator_epoch) == (None, 0)
    wait_until(lambda: committed_end(admin, tp) == 3, 30, "the two records and the marker")


def test_abort_transaction_with_an_epoch_that_is_too_old_is_refused(
    broker: RealKafka, admin: KafkaAdminClient, tp: TopicPartition
) -> None:
    hang(broker, tp, 1_000_002, "hanging")
    admin.abort_transaction(AbortTransactionSpec(tp, 1_000_002, 3))
    with pytest.raises(InvalidProducerEpochError, match=rf"failed for {tp} \(producer id 1000002, epoch 2\)"):
        admin.abort_transaction(AbortTransactionSpec(tp, 1_000_002, 2))


def test_a_producer_whose_transaction_was_aborted_on_a_partition_goes_on_and_lost_what_was_before(
    broker: RealKafka, admin: KafkaAdminClient, begin: Begin, tp: TopicPartition
) -> None:
    transaction = begin(broker.bootstrap_servers, tp)
    (state,) = producers(admin, tp)
    admin.abort_transaction(AbortTransactionSpec(tp, state.producer_id, state.producer_epoch))
    transaction.write(b"after")
    (state,) = producers(admin, tp)
    assert state.current_transaction_start_offset == 2
    transaction.producer.commit_transaction(30)
    wait_until(lambda: producers(admin, tp)[0].current_transaction_start_offset is None, 30, "the marker")


@pytest.mark.parametrize("terminate", [False, True])
def test_a_fenced_producer_can_do_no_more_and_its_transaction_is_aborted(
    broker: RealKafka, admin: KafkaAdminClient, begin: Begin, tp: TopicPartition, terminate: bool
) -> None:
    from confluent_kafka import KafkaError, KafkaException

    transaction = begin(broker.bootstrap_servers, tp)
    before = admin.describe_transactions([transaction.id])[transaction.id]
    if terminate:
        admin.force_terminate_transaction(transaction.id)
    else:
        new = f"{transaction.id}-new"
        fenced = admin.fence_producers([transaction.id, new])
        assert fenced[transaction.id].producer_id == before.producer_id
        assert fenced[transaction.id].producer_epoch > before.producer_epoch
        assert fenced[new] == FencedProducer(fenced[new].producer_id, 0)
    after = admin.describe_transactions([transaction.id])[transaction.id]
    assert (after.state, after.topic_partitions) == (TransactionState.EMPTY, frozenset())
    assert after.producer_epoch > before.producer_epoch
    with pytest.raises(KafkaException) as refused:
        transaction.producer.commit_transaction(30)
    assert refused.value.args[0].code() == KafkaError._FENCED
    (state,) = producers(admin, tp)
    assert state.current_transaction_start_offset is None


def test_hanging_transactions_are_found_as_by_kafkas_tool_and_aborted(
    broker: RealKafka, admin: KafkaAdminClient, begin: Begin, tp: TopicPartition, capsys: Captured
) -> None:
    known = f"known-{tp.topic}"
    ids = admin.fence_producers([known])[known].producer_id, 1_000_003
    alive = begin(broker.bootstrap_servers, tp)
    offsets = [hang(broker, tp, producer_id, known) for producer_id in ids]
    for where in (("--topic", tp.topic), ("--broker-id", "1"), ("--topic", tp.topic, "--partition", "0")):
        capsys.readouterr()
        assert kclient(broker, "find-hanging", *where) == 0
        found = rows(capsys.readouterr().out)
        theirs = of_java(broker, "find-hanging", *where)
        assert kclient(broker, "find-hanging", *where) == 0
        # The duration, in minutes, may go on in between.
        assert theirs in (found, rows(capsys.readouterr().out))
        assert {int(row[5]) for row in found if row[0] == tp.topic} == {*offsets}
    assert kclient(broker, "find-hanging", "--topic", tp.topic, "--partition", "1", "--output", "json") == 0
    assert kclient(broker, "find-hanging", "--topic", tp.topic, "--max-transaction-timeout", "9999999") == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
    # Old enough for the search, but its coordinator will end it.
    assert kclient(broker, "find-hanging", "--topic", tp.topic, "--max-transaction-timeout", "0") == 0
    assert alive.id in admin.list_transactions(states=["Ongoing"])
    assert len(rows(capsys.readouterr().out)) == len(offsets)

    partition = ("--topic", tp.topic, "--partition", "0")
    assert kclient(broker, "abort", *partition, "--start-offset", str(offsets[0])) == 0
    by_producer = ("--producer-id", str(ids[1]), "--producer-epoch", "0", "--coordinator-epoch", "-1")
    assert kclient(broker, "abort", *partition, *by_producer, "--output", "json") == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"Aborted the transaction on {tp} (producer id {ids[0]}, epoch 0)."
    assert json.loads(said[1])["producer_id"] == ids[1]
    assert kclient(broker, "find-hanging", "--topic", tp.topic) == 0
    assert rows(capsys.readouterr().out) == []
    assert kclient(broker, "abort", *partition, "--start-offset", str(offsets[0])) == 1
    assert f"No open transaction on {tp}" in capsys.readouterr().err


def test_what_is_listed_and_described_is_what_kafkas_tool_prints(
    broker: RealKafka, begin: Begin, tp: TopicPartition, capsys: Captured
) -> None:
    transaction = begin(broker.bootstrap_servers, tp)
    one = ("--transactional-id", transaction.id)
    partition = ("--topic", tp.topic, "--partition", "0")
    for words in (
        ("list",),
        ("list", "--transactional-id-pattern", f"{transaction.id[:-1]}."),
        ("list", "--duration-filter", "3600000"),
        ("describe-producers", *partition),
        ("describe-producers", *partition, "--broker-id", "1"),
    ):
        capsys.readouterr()
        assert kclient(broker, *words) == 0
        assert rows(capsys.readouterr().out) == of_java(broker, *words), words
    assert kclient(broker, "describe", *one) == 0
    (ours,) = rows(capsys.readouterr().out)
    (theirs,) = of_java(broker, "describe", *one)
    duration = 7  # the only column that moves
    assert int(ours.pop(duration)) <= int(theirs.pop(duration))
    assert ours == theirs
    assert kclient(broker, "forceTerminateTransaction", "--transactionalId", transaction.id) == 0
    capsys.readouterr()
    assert kclient(broker, "describe", *one, "--output", "json") == 0
    assert json.loads(capsys.readouterr().out)["state"] == "Empty"


def test_three_brokers_are_asked_each_for_what_it_knows(kafka_cluster: RealCluster, begin: Begin) -> None:
    servers = kafka_cluster.direct_servers
    topic = f"t-{uuid.uuid4().hex[:12]}"
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        admin.create_topics([NewTopic(topic, replica_assignments={0: [1, 2], 1: [2, 3], 2: [3, 1]})])
        partitions = [TopicPartition(topic, number) for number in range(3)]
        wait_until(lambda: topic in admin.list_topics(), 30, "the topic")
        begun = [begin(servers, tp) for tp in (*partitions, *partitions)]
        listed = admin.list_transactions(states=["Ongoing"])
        described = admin.describe_transactions([each.id for each in begun])
        assert {each.id: listed[each.id].coordinator_id for each in begun} == {
            name: found.coordinator_id for name, found in described.items()
        }
        assert {tp for found in described.values() for tp in found.topic_partitions} == {*partitions}

        led = {tp: len(found.active_producers) for tp, found in admin.describe_producers(partitions).items()}
        assert led == dict.fromkeys(partitions, 2)
        follower = admin.describe_producers(partitions[:1], broker_id=2)[partitions[0]]
        assert len(follower.active_producers) == 2
        with pytest.raises(NotLeaderOrFollowerError, match=f"failed for {partitions[0]}"):
            admin.describe_producers(partitions[:1], broker_id=3)
        fenced = admin.fence_producers([each.id for each in begun])
        assert set(fenced) == {each.id for each in begun}
        wait_until(
            lambda: not any(each.id in admin.list_transactions(states=["Ongoing"]) for each in begun),
            30,
            "the ends",
        )


def test_a_broker_that_does_not_answer_is_named_and_hides_no_other(
    kafka_cluster: RealCluster,
) -> None:
    names = [f"x-{uuid.uuid4().hex[:12]}" for _ in range(40)]
    silent = kafka_cluster.brokers[1]
    with KafkaAdminClient(bootstrap_servers=kafka_cluster.bootstrap_servers) as admin:
        admin.fence_producers(names)
        every = {name: one for name, one in admin.list_transactions().items() if name in names}
        assert set(every) == {*names}
        silent.proxy.swallow(ApiKeys.LIST_TRANSACTIONS)
        try:
            with pytest.raises(
                AdminError, match="broker 2: LIST_TRANSACTIONS to broker 2 got no answer"
            ) as failed:
                admin.list_transactions(timeout_ms=5000)
        finally:
            silent.proxy.clear()
    assert list(failed.value.errors) == ["broker 2"]
    found = {name: one for name, one in failed.value.results.items() if name in names}
    assert found == {name: one for name, one in every.items() if one.coordinator_id != 2}
    assert 0 < len(found) < len(every)


def test_a_transaction_that_its_coordinator_has_not_heard_of_is_refused_unless_brokers_do_not_verify(
    broker: RealKafka, admin: KafkaAdminClient, tp: TopicPartition
) -> None:
    name = f"unverified-{tp.topic}"
    producer_id = admin.fence_producers([name])[name].producer_id
    this = ConfigResource(ConfigResourceType.BROKER, "1")
    setting = "transaction.partition.verification.enable"
    admin.incremental_alter_configs({this: [AlterConfigOp(setting, "true")]})
    try:
        wait_until(lambda: admin.describe_configs([this])[this][setting].value == "true", 30, "the setting")
        with pytest.raises(AssertionError, match=f"error_code={int(Errors.TRANSACTION_ABORTABLE)}"):
            hang(broker, tp, producer_id, name)
    finally:
        admin.incremental_alter_configs({this: [AlterConfigOp(setting, "false")]})
    assert producers(admin, tp) == ()
