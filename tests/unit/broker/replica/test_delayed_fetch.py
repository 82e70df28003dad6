"""A fetch that waits for bytes."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import pytest

from harness.mock_time import MockTime
from kclient.broker.log.unified_log import FetchIsolation
from kclient.broker.purgatory import DelayedOperationPurgatory
from kclient.broker.replica.delayed_fetch import DelayedFetch
from kclient.broker.replica.fetching import FetchParams, PartitionFetch
from kclient.common.topic_partition import TopicPartition


class FakePartition:
    """The state that the operation looks at."""

    def __init__(self, number: int = 0) -> None:
        self.tp = TopicPartition("t", number)
        self.log = self
        self.appended_bytes = 0
        self.end = 10

    def readable_end(self, isolation: FetchIsolation) -> int:
        return self.end


def fetch_of(
    partition: FakePartition,
    missing: int,
    max_bytes: int = 1000,
    current: bool = True,
    on_enough: Callable[[], None] = lambda: None,
) -> Any:
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
        on_enough=on_enough,
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


def fetch_of_all(
    *partitions: FakePartition, missing: int, each: int = 1000
) -> tuple[DelayedFetch, list[str]]:
    """A fetch from offset 10 of partitions that are current, and the times it was answered."""
    answers: list[str] = []
    fetches: Any = [(partition, PartitionFetch(partition.tp, 10, each)) for partition in partitions]
    before: Any = {partition: partition.appended_bytes for partition in partitions}
    operation = DelayedFetch(
        500,
        FetchParams(FetchIsolation.HIGH_WATERMARK, 500, missing, 10_000),
        fetches,
        before,
        missing_bytes=missing,
        is_current=lambda _: True,
        on_enough=lambda: answers.append("read again"),
    )
    return operation, answers


def test_partitions_give_bytes_together() -> None:
    one, two = FakePartition(0), FakePartition(1)
    operation, answers = fetch_of_all(one, two, missing=100)
    one.end, one.appended_bytes = 11, 60
    assert not operation.try_complete()
    two.end, two.appended_bytes = 11, 40
    assert operation.try_complete()
    assert answers == ["read again"]


def test_bytes_from_before_the_request_do_not_count() -> None:
    partition = FakePartition()
    partition.appended_bytes = 1_000_000
    operation, answers = fetch_of_all(partition, missing=100)
    partition.end, partition.appended_bytes = 11, 1_000_099
    assert not operation.try_complete()
    partition.appended_bytes += 1
    assert operation.try_complete()
    assert answers == ["read again"]


def test_one_partition_that_is_cut_answers_for_all() -> None:
    fine, cut = FakePartition(0), FakePartition(1)
    operation, answers = fetch_of_all(fine, cut, missing=100)
    cut.end = 9
    assert operation.try_complete()
    assert answers == ["read again"]


def test_the_end_of_time_reads_again_with_what_there_is() -> None:
    operation, answers = fetch_of_all(FakePartition(), missing=100)
    operation.run()
    operation.run()
    assert answers == ["read again"]


def test_the_isolation_of_the_request_decides_what_can_be_read() -> None:
    asked: list[FetchIsolation] = []

    class Transactional(FakePartition):
        def readable_end(self, isolation: FetchIsolation) -> int:
            asked.append(isolation)
            return 10 if isolation is FetchIsolation.TXN_COMMITTED else 20

    partition = Transactional()
    params = FetchParams(FetchIsolation.TXN_COMMITTED, 500, 1, 10_000)
    fetches: Any = [(partition, PartitionFetch(partition.tp, 10, 1000))]
    before: Any = {partition: 0}
    operation = DelayedFetch(
        500, params, fetches, before, missing_bytes=1, is_current=lambda _: True, on_enough=lambda: None
    )
    partition.appended_bytes = 500
    assert not operation.try_complete()
    assert asked == [FetchIsolation.TXN_COMMITTED]


def test_a_fetch_that_is_complete_holds_nothing_of_its_request() -> None:
    answers: list[int] = []

    class Request:
        def answer(self) -> None:
            answers.append(1)

    request = Request()
    seen = weakref.ref(request)
    partition = FakePartition()
    operation = fetch_of(partition, 100, on_enough=request.answer)
    purgatory = DelayedOperationPurgatory[DelayedFetch]("fetch", MockTime(), reaper_enabled=False)
    assert not purgatory.try_complete_else_watch(operation, ["t-0", "t-1"])
    del request
    assert operation.force_complete()
    assert answers == [1]
    assert not operation.try_complete()
    del operation
    assert purgatory.watched == 2
    assert seen() is None, "while there are still entries on the watch lists of partitions"
    purgatory.shutdown()
