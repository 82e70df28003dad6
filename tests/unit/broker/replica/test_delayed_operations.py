"""Requests that wait: for replication, and for bytes."""

from __future__ import annotations

from typing import Any

import pytest

from kclient.broker.log.unified_log import FetchIsolation
from kclient.broker.replica.delayed_fetch import DelayedFetch
from kclient.broker.replica.delayed_produce import DelayedProduce, ProduceOutcome
from kclient.broker.replica.fetching import FetchParams, PartitionFetch
from kclient.common.topic_partition import TopicPartition
from kclient.errors import KafkaTimeoutError, NotEnoughReplicasError


class FakePartition:
    """The state that the operations look at."""

    def __init__(self, number: int = 0) -> None:
        self.tp = TopicPartition("t", number)
        self.log = self
        self.high_watermark = 0
        self.appended_bytes = 0
        self.end = 10

    def readable_end(self, isolation: FetchIsolation) -> int:
        return self.end


def test_a_produce_is_answered_once_every_partition_is_replicated() -> None:
    one, two, failed = FakePartition(0), FakePartition(1), FakePartition(2)
    outcomes: dict[Any, ProduceOutcome] = {
        one: ProduceOutcome(last_offset=4),
        two: ProduceOutcome(last_offset=9),
        failed: ProduceOutcome(NotEnoughReplicasError()),
    }
    answers: list[int] = []
    operation = DelayedProduce(1000, outcomes, lambda: answers.append(1))
    one.high_watermark = 5
    assert not operation.try_complete()
    two.high_watermark = 9
    assert not operation.try_complete()
    two.high_watermark = 10
    assert operation.try_complete()
    assert answers == [1]
    assert outcomes[one].error is outcomes[two].error is None


def test_a_produce_that_runs_out_of_time_fails_only_what_is_not_replicated() -> None:
    one, two = FakePartition(0), FakePartition(1)
    outcomes: dict[Any, ProduceOutcome] = {
        one: ProduceOutcome(last_offset=4),
        two: ProduceOutcome(last_offset=4),
    }
    operation = DelayedProduce(1000, outcomes, lambda: None)
    one.high_watermark = 5
    operation.try_complete()
    operation.run()
    assert outcomes[one].error is None
    assert isinstance(outcomes[two].error, KafkaTimeoutError)


def fetch_of(partition: FakePartition, missing: int, max_bytes: int = 1000, current: bool = True) -> Any:
    params = FetchParams(FetchIsolation.HIGH_WATERMARK, 500, missing, 10_000)
    fetches: Any = [(partition, PartitionFetch(partition.tp, 10, max_bytes))]
    before: Any = {partition: partition.appended_bytes}
    return DelayedFetch(
        500,
        params,
        fetches,
        before,
        missing_bytes=missing,
        is_current=lambda _: current,
        on_enough=lambda: None,
    )


def test_a_fetch_waits_for_the_bytes_it_misses() -> None:
    partition = FakePartition()
    operation = fetch_of(partition, 100)
    assert not operation.try_complete()
    partition.end, partition.appended_bytes = 11, 99
    assert not operation.try_complete()
    partition.appended_bytes = 100
    assert operation.try_complete()


def test_bytes_that_may_not_be_read_yet_do_not_count() -> None:
    partition = FakePartition()
    operation = fetch_of(partition, 100)
    partition.appended_bytes = 1000
    assert not operation.try_complete()


def test_one_partition_counts_for_no_more_than_is_asked_of_it() -> None:
    partition = FakePartition()
    operation = fetch_of(partition, 100, max_bytes=50)
    partition.end, partition.appended_bytes = 20, 1000
    assert not operation.try_complete()


@pytest.mark.parametrize("gone", ["truncated", "deleted"])
def test_a_fetch_is_answered_when_its_partition_is_cut_or_gone(gone: str) -> None:
    partition = FakePartition()
    if gone == "truncated":
        partition.end = 9
    assert fetch_of(partition, 100, current=gone != "deleted").try_complete()
