"""Operations complete once: by their condition, by a watched key, or by time."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

import pytest

from harness.mock_time import MockTime
from harness.waiting import wait_until
from kclient.broker.purgatory import DelayedOperation, DelayedOperationPurgatory
from kclient.broker.timer.system_timer import SystemTimer
from kclient.broker.timer.timing_wheel import TimerTask


class Operation(DelayedOperation):
    def __init__(self, delay_ms: int = 1000) -> None:
        super().__init__(delay_ms)
        self.ready = False
        self.tries = 0
        self.completions = 0
        self.expired = 0

    def try_complete(self) -> bool:
        self.tries += 1
        return self.ready and self.force_complete()

    def on_complete(self) -> None:
        self.completions += 1

    def on_expiration(self) -> None:
        self.expired += 1


@pytest.fixture
def time() -> MockTime:
    return MockTime()


@pytest.fixture
def purgatory(time: MockTime) -> Iterator[DelayedOperationPurgatory[Operation]]:
    made: DelayedOperationPurgatory[Operation] = DelayedOperationPurgatory("test", time, reaper_enabled=False)
    yield made
    made.shutdown()


Purgatory = DelayedOperationPurgatory[Operation]


def test_an_operation_that_can_complete_is_not_watched(purgatory: Purgatory) -> None:
    operation = Operation()
    operation.ready = True
    assert purgatory.try_complete_else_watch(operation, ["a"])
    assert (operation.completions, purgatory.watched, purgatory.delayed) == (1, 0, 0)


def test_an_operation_that_another_thread_completes_before_it_has_its_timer_keeps_none(
    time: MockTime,
) -> None:
    class SlowTimer(SystemTimer):
        def add(self, task: TimerTask) -> None:
            assert isinstance(task, Operation)
            task.force_complete()
            super().add(task)

    purgatory = Purgatory("test", time, timer=SlowTimer("test", time), reaper_enabled=False)
    operation = Operation()
    assert purgatory.try_complete_else_watch(operation, ["a"])
    assert (operation.completions, purgatory.delayed) == (1, 0)
    purgatory.shutdown()


def test_a_key_completes_the_operations_that_watch_it_and_are_ready(purgatory: Purgatory) -> None:
    one, two = Operation(), Operation()
    assert not purgatory.try_complete_else_watch(one, ["a", "b"])
    assert not purgatory.try_complete_else_watch(two, ["b"])
    assert purgatory.check_and_complete("a") == 0
    one.ready = True
    assert purgatory.check_and_complete("b") == 1
    assert (one.completions, two.completions) == (1, 0)
    assert purgatory.delayed == 1
    assert purgatory.check_and_complete("unknown") == 0


def test_an_event_between_the_first_try_and_the_watch_lists_is_not_lost(purgatory: Purgatory) -> None:
    class Late(Operation):
        def try_complete(self) -> bool:
            # What another thread does right after the first try: it changes the state and checks a key that
            # nobody watches yet.
            first = self.tries == 0
            done = super().try_complete()
            if first:
                self.ready = True
                assert purgatory.check_and_complete("a") == 0
            return done

    operation = Late()
    assert purgatory.try_complete_else_watch(operation, ["a"])
    assert operation.completions == 1


def test_time_completes_an_operation_once_and_says_so(purgatory: Purgatory, time: MockTime) -> None:
    operation = Operation(100)
    purgatory.try_complete_else_watch(operation, ["a"])
    time.advance(99)
    purgatory.advance_clock(0)
    assert operation.completions == 0
    time.advance(1)
    purgatory.advance_clock(0)
    assert (operation.completions, operation.expired) == (1, 1)
    operation.ready = True
    assert purgatory.check_and_complete("a") == 0
    assert operation.completions == 1
    assert purgatory.watched == 0


def test_completing_takes_the_operation_out_of_the_timer(purgatory: Purgatory, time: MockTime) -> None:
    operation = Operation(100)
    purgatory.try_complete_else_watch(operation, ["a"])
    operation.force_complete()
    assert purgatory.delayed == 0
    time.advance(200)
    purgatory.advance_clock(0)
    assert operation.expired == 0


def test_only_one_of_many_threads_completes_an_operation() -> None:
    operation = Operation()
    barrier = threading.Barrier(8)
    wins: list[bool] = []

    def complete() -> None:
        barrier.wait()
        wins.append(operation.force_complete())

    threads = [threading.Thread(target=complete) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wins.count(True) == 1
    assert operation.completions == 1


def test_completed_operations_are_swept_from_the_lists_of_their_other_keys(time: MockTime) -> None:
    purgatory: Purgatory = DelayedOperationPurgatory("test", time, purge_interval=5, reaper_enabled=False)
    operations = [Operation() for _ in range(7)]
    for operation in operations:
        purgatory.try_complete_else_watch(operation, ["a", "b"])
    for operation in operations[:5]:
        operation.force_complete()
    purgatory.advance_clock(0)
    assert purgatory.watched == 14
    operations[5].force_complete()
    purgatory.advance_clock(0)
    assert purgatory.watched == 2
    purgatory.shutdown()


def test_an_operation_that_raises_keeps_nobody_else_waiting(
    purgatory: Purgatory, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Operation):
        def on_complete(self) -> None:
            raise RuntimeError("no answer")

    broken, sound = Broken(), Operation()
    for operation in (broken, sound):
        purgatory.try_complete_else_watch(operation, ["a"])
        operation.ready = True
    with caplog.at_level(logging.ERROR):
        assert purgatory.check_and_complete("a") == 1
    assert sound.completions == 1
    assert "no answer" in caplog.text
    assert purgatory.watched == 0


def test_the_reaper_expires_operations_and_ends_with_the_purgatory() -> None:
    purgatory: Purgatory = DelayedOperationPurgatory("reaped")
    operation = Operation(1)
    purgatory.try_complete_else_watch(operation, ["a"])
    wait_until(lambda: operation.expired == 1)
    purgatory.shutdown()
    purgatory.shutdown()
    assert not any(thread.name == "expiration-reaper-reaped" for thread in threading.enumerate())
