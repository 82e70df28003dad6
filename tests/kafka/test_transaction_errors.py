"""Errors at every step of a transaction, from a proxy before a real broker that answers in its place.

Transactions are those of brokers now (TV2), and as they were before Kafka 4 (TV1), which these brokers go along with.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import pytest

from harness.network.proxy import FaultProxy, Rule
from harness.network.transaction_answers import refuse, refuse_to_find
from harness.real_kafka.broker import RealKafka
from harness.scenarios.transaction_errors import Case, Step, Then, Transactions, cases, every
from harness.topics import new_topic, read_all
from harness.waiting import wait_until
from kclient import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kclient.client.coordinators import CoordinatorType
from kclient.client.network_client import NetworkClient
from kclient.errors import InvalidTxnStateError, TransactionAbortableError

DEADLINE_S = 30.0
_KINDS = {
    Step.FIND_TRANSACTION_COORDINATOR: CoordinatorType.TRANSACTION,
    Step.FIND_COORDINATOR_AGAIN: CoordinatorType.TRANSACTION,
    Step.FIND_GROUP_COORDINATOR: CoordinatorType.GROUP,
}


@attrs.define
class _Refusals:
    """With `pass_on` the broker does what is asked, and the code takes the place of its answer."""

    proxy: FaultProxy
    pass_on: bool = False
    rule: Rule | None = None

    def refuse(self, step: Step, code: int) -> None:
        kind = _KINDS.get(step)
        answer = refuse(step.api, code) if kind is None else refuse_to_find(kind, code)
        self.rule = self.proxy.answer(step.api, answer, pass_on=self.pass_on)

    def refused(self) -> int:
        self.proxy.clear()
        return 0 if self.rule is None else self.rule.hits


class _Reader:
    """Reads what was committed to the first partition of a topic."""

    def __init__(self, consumer: KafkaConsumer[bytes, bytes], topic: str) -> None:
        self._consumer = consumer
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek_to_beginning([TopicPartition(topic, 0)])

    def committed(self, last: bytes) -> list[bytes]:
        values: list[bytes] = []

        def came() -> bool:
            values.extend(record.value or b"" for record in self._consumer.poll(100))
            return last in values

        wait_until(came, DEADLINE_S, f"{last.decode()} to be committed")
        return values


@pytest.fixture(scope="module")
def proxy(kafka: RealKafka) -> Iterator[FaultProxy]:
    with FaultProxy(("127.0.0.1", kafka.behind_proxy_port), port=kafka.proxy_port) as running:
        yield running


def transactions(kafka: RealKafka, proxy: FaultProxy, refusals: _Refusals) -> Iterator[Transactions]:
    """Transactions through the proxy, whose outcome is read past it."""
    topic = new_topic(kafka.bootstrap_servers, 2)
    with (
        KafkaConsumer(
            bootstrap_servers=kafka.bootstrap_servers, isolation_level="read_committed"
        ) as consumer,
        KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin,
    ):

        def offsets_of(group: str) -> dict[int, int]:
            listed = admin.list_consumer_group_offsets(group)
            return {tp.partition: offset.offset for tp, offset in listed.items() if offset is not None}

        running = Transactions(
            proxy.bootstrap, topic, refusals, _Reader(consumer, topic).committed, offsets_of
        )
        yield running
        running.close()


@pytest.fixture(scope="module")
def refusing(kafka: RealKafka, proxy: FaultProxy) -> Iterator[Transactions]:
    yield from transactions(kafka, proxy, _Refusals(proxy))


@pytest.fixture(scope="module")
def lying(kafka: RealKafka, proxy: FaultProxy) -> Iterator[Transactions]:
    yield from transactions(kafka, proxy, _Refusals(proxy, pass_on=True))


def _as_before(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    if case.version == "TV1":
        monkeypatch.setattr(NetworkClient, "finalized_level", lambda self, feature: 0)


@every(*cases("TV2"), *cases("TV1"))
def test_an_error_has_its_class_and_the_next_transaction_is_clean(
    refusing: Transactions, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    _as_before(case, monkeypatch)
    refusing.run(case)


@every(*(case for version in ("TV2", "TV1") for case in cases(version) if case.then is Then.GOES_ON))
def test_what_a_broker_has_done_is_done_once_though_it_says_that_it_was_not(
    lying: Transactions, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    _as_before(case, monkeypatch)
    lying.run(case)


_ABORTABLE = [
    case
    for version in ("TV2", "TV1")
    for case in cases(version)
    if (case.step, case.then) == (Step.COMMIT, Then.ABORT)
]


@every(*_ABORTABLE)
def test_a_commit_that_was_done_cannot_be_aborted_whatever_its_answer_says(
    kafka: RealKafka, proxy: FaultProxy, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    _as_before(case, monkeypatch)
    topic = new_topic(kafka.bootstrap_servers, 1)
    refusals = _Refusals(proxy, pass_on=True)
    with KafkaProducer(bootstrap_servers=proxy.bootstrap, transactional_id=f"x-{topic}") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"done")
        refusals.refuse(case.step, case.code)
        with pytest.raises(TransactionAbortableError):
            producer.commit_transaction()
        assert refusals.refused() == 1
        with pytest.raises(InvalidTxnStateError):
            producer.abort_transaction()
    records = read_all(kafka.bootstrap_servers, topic, isolation_level="read_committed")
    assert [record.value for record in records] == [b"done"]
