"""The search for hanging transactions: which partitions are asked about, and what is found hanging there."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, cast

import pytest

from kclient.admin import (
    KafkaAdminClient,
    PartitionProducerState,
    ProducerState,
    TopicDescription,
    TransactionDescription,
    TransactionListing,
    TransactionState,
)
from kclient.cli.hanging_transactions import OpenTransaction, find_hanging
from kclient.common.node import Node
from kclient.common.topic_partition import PartitionInfo, TopicPartition
from kclient.errors import (
    AdminError,
    KafkaError,
    TransactionalIdAuthorizationError,
    TransactionalIdNotFoundError,
)

NOW_MS = 1_000_000
A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def producer(producer_id: int, start: int | None = 5, last_ms: int = NOW_MS - 1) -> ProducerState:
    return ProducerState(producer_id, 0, 1, last_ms, None, start)


class Cluster:
    """An admin client of a cluster with a-0 on broker 1, a-1 on 2, b-0 on both."""

    def __init__(self) -> None:
        self.replicas = {A0: (1,), A1: (2,), B0: (1, 2)}
        self.producers: dict[TopicPartition, tuple[ProducerState, ...]] = {}
        self.ids: dict[str, int] = {}
        """The producer ids of transactional ids."""
        self.transactions: dict[str, Collection[TopicPartition] | KafkaError] = {}
        self.asked: list[tuple[Sequence[TopicPartition], int | None]] = []

    def list_topics(self) -> Any:
        return dict.fromkeys(tp.topic for tp in self.replicas)

    def describe_topics(self, names: Sequence[str]) -> dict[str, TopicDescription]:
        return {
            name: TopicDescription(
                name,
                tuple(
                    PartitionInfo(
                        name, tp.partition, None, tuple(Node(each, "h", 1) for each in brokers), (), ()
                    )
                    for tp, brokers in self.replicas.items()
                    if tp.topic == name
                ),
            )
            for name in names
        }

    def describe_producers(self, partitions: Sequence[TopicPartition], broker_id: int | None) -> Any:
        self.asked.append((partitions, broker_id))
        return {tp: PartitionProducerState(self.producers.get(tp, ())) for tp in partitions}

    def list_transactions(self, *, producer_ids: set[int]) -> dict[str, TransactionListing]:
        return {
            each: TransactionListing(each, producer_id, TransactionState.ONGOING, 1)
            for each, producer_id in self.ids.items()
            if producer_id in producer_ids
        }

    def describe_transactions(self, ids: Sequence[str]) -> Any:
        errors = {each: found for each in ids if isinstance(found := self.transactions[each], KafkaError)}
        if len(ids) == 1 and errors:
            raise errors[ids[0]]
        results = {
            each: TransactionDescription(
                each, 1, TransactionState.ONGOING, self.ids[each], 0, 1, 1, frozenset(cast(Any, found))
            )
            for each in ids
            if not isinstance(found := self.transactions[each], KafkaError)
        }
        if errors:
            raise AdminError("some failed", results=results, errors=errors)
        return results

    def hanging(self, **where: Any) -> list[OpenTransaction]:
        given = {
            "topic": None,
            "partition": None,
            "broker_id": None,
            "last_written_before_ms": NOW_MS,
            **where,
        }
        return find_hanging(cast(KafkaAdminClient, self), **given)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.mark.parametrize(
    ("where", "asked"),
    [
        ({"topic": "a"}, ([A0, A1], None)),
        ({"topic": "a", "broker_id": 2}, ([A1], 2)),
        ({"broker_id": 1}, ([A0, B0], 1)),
        ({"topic": "a", "partition": 1}, ([A1], None)),
        ({"topic": "a", "partition": 0, "broker_id": 2}, ([A0], 2)),
    ],
)
def test_only_what_is_named_is_searched(cluster: Cluster, where: dict[str, Any], asked: Any) -> None:
    assert cluster.hanging(**where) == []
    assert cluster.asked == [asked]


def test_many_partitions_are_asked_about_in_portions(cluster: Cluster) -> None:
    cluster.replicas = {TopicPartition("a", number): (1,) for number in range(1001)}
    cluster.hanging(topic="a")
    assert [len(partitions) for partitions, _ in cluster.asked] == [500, 500, 1]


def test_a_producer_that_no_coordinator_knows_hangs(cluster: Cluster) -> None:
    cluster.producers = {A1: (producer(9), producer(8)), A0: (producer(9),)}
    assert cluster.hanging(topic="a") == [(A0, producer(9)), (A1, producer(8)), (A1, producer(9))]


def test_without_a_transaction_or_with_a_young_one_nothing_hangs(cluster: Cluster) -> None:
    cluster.producers = {A0: (producer(9, start=None), producer(8, last_ms=NOW_MS))}
    assert cluster.hanging(topic="a") == []


def test_what_its_coordinator_will_end_does_not_hang_and_what_it_will_not_does(cluster: Cluster) -> None:
    cluster.producers = {A0: (producer(9),), A1: (producer(9), producer(8))}
    cluster.ids = {"nine": 9, "eight": 8}
    cluster.transactions = {"nine": [A0, B0], "eight": []}
    assert cluster.hanging(topic="a") == [(A1, producer(8)), (A1, producer(9))]


@pytest.mark.parametrize("others", [{}, {"eight": [A0]}])
def test_an_id_that_was_forgotten_meanwhile_has_no_coordinator(
    cluster: Cluster, others: dict[str, list[TopicPartition]]
) -> None:
    cluster.producers = {A0: (producer(9), producer(8)) if others else (producer(9),)}
    cluster.ids = {"nine": 9, **({"eight": 8} if others else {})}
    cluster.transactions = {"nine": TransactionalIdNotFoundError("gone"), **others}
    assert cluster.hanging(topic="a") == [(A0, producer(9))]


def test_an_id_that_cannot_be_described_is_not_taken_for_hanging(cluster: Cluster) -> None:
    cluster.producers = {A0: (producer(9), producer(8))}
    cluster.ids = {"nine": 9, "eight": 8}
    cluster.transactions = {"nine": TransactionalIdAuthorizationError("no"), "eight": []}
    with pytest.raises(AdminError):
        cluster.hanging(topic="a")
