"""The queue in which the I/O thread leaves work for the application's thread."""

from __future__ import annotations

import pytest

from kclient.common.topic_partition import TopicPartition
from kclient.consumer.internals.application_queue import ApplicationQueue
from kclient.consumer.internals.coordinator.generation import Generation
from kclient.consumer.internals.rebalance_callback import RebalanceCallback, RebalanceKind
from kclient.errors import FencedInstanceIdError, KafkaError

T0 = frozenset((TopicPartition("t", 0),))


@pytest.fixture
def notified() -> list[int]:
    return []


@pytest.fixture
def queue(notified: list[int]) -> ApplicationQueue:
    return ApplicationQueue(lambda: notified.append(1))


def fail() -> None:
    raise ValueError


def test_whoever_leaves_something_notifies_the_application(
    queue: ApplicationQueue, notified: list[int]
) -> None:
    assert not queue
    queue.call(lambda: None)
    queue.rebalance(RebalanceCallback(RebalanceKind.ASSIGNED, T0, Generation()))
    queue.fail(KafkaError())
    assert queue
    assert len(notified) == 3


def test_calls_are_made_in_order_and_those_that_come_meanwhile_the_next_time(queue: ApplicationQueue) -> None:
    calls: list[int] = []

    def first() -> None:
        calls.append(1)
        queue.call(lambda: calls.append(3))

    queue.call(first)
    queue.call(lambda: calls.append(2))
    queue.run_calls()
    assert calls == [1, 2]
    queue.run_calls()
    assert calls == [1, 2, 3]
    assert not queue


def test_a_call_may_make_those_behind_it(queue: ApplicationQueue) -> None:
    calls: list[int] = []
    queue.call(queue.run_calls)
    queue.call(lambda: calls.append(2))
    queue.run_calls()
    assert calls == [2]


def test_a_call_that_fails_leaves_the_others_but_for_the_last_time(queue: ApplicationQueue) -> None:
    calls: list[int] = []
    queue.call(fail)
    queue.call(lambda: calls.append(2))
    with pytest.raises(ValueError):
        queue.run_calls()
    assert not calls
    queue.call(fail)
    queue.call(lambda: calls.append(4))
    assert isinstance(queue.run_all_calls(), ValueError)
    assert calls == [2, 4]


def test_an_error_is_raised_once_and_a_final_one_for_ever(queue: ApplicationQueue) -> None:
    queue.fail(KafkaError("passing"))
    with pytest.raises(KafkaError, match="passing"):
        queue.raise_error()
    queue.raise_error()
    queue.fail(FencedInstanceIdError())
    for _ in range(2):
        with pytest.raises(FencedInstanceIdError):
            queue.raise_error()


def test_the_death_of_the_io_thread_is_final(queue: ApplicationQueue) -> None:
    queue.io_thread_died(ZeroDivisionError())
    for _ in range(2):
        with pytest.raises(KafkaError, match="died") as raised:
            queue.raise_error()
        assert isinstance(raised.value.__cause__, ZeroDivisionError)


def test_rebalances_that_are_dropped_are_cancelled_and_those_that_were_begun_told(
    queue: ApplicationQueue,
) -> None:
    begun, later = (RebalanceCallback(RebalanceKind.REVOKED, T0, Generation()) for _ in range(2))
    queue.rebalance(begun)
    queue.rebalance(later)
    assert queue.next_rebalance() is begun
    assert queue.drop_rebalances() == [begun]
    assert queue.next_rebalance() is None
    assert not later.start()


def test_a_rebalance_is_the_next_one_until_it_is_finished(queue: ApplicationQueue) -> None:
    cancelled = RebalanceCallback(RebalanceKind.REVOKED, T0, Generation())
    callback = RebalanceCallback(RebalanceKind.ASSIGNED, T0, Generation())
    queue.rebalance(cancelled)
    queue.rebalance(callback)
    assert cancelled.cancel()
    assert queue.next_rebalance() is callback
    assert queue.next_rebalance() is callback
    assert not callback.cancel()
    queue.finish_rebalance(callback)
    assert queue.next_rebalance() is None
