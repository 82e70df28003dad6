"""DelayedOperation by itself: who may try it, in which order, and how often."""

from __future__ import annotations

import threading

import pytest

from harness.mock_time import MockTime
from kclient.broker.purgatory import DelayedOperation
from kclient.broker.timer import SystemTimer


class Operation(DelayedOperation):
    """An operation that notes what is done with it."""

    def __init__(self, *, ready: bool = False, lock: threading.RLock | None = None) -> None:
        if lock is None:
            super().__init__(100)
        else:
            super().__init__(100, lock=lock)
        self.ready = ready
        self.calls: list[str] = []

    def try_complete(self) -> bool:
        self.calls.append("try")
        return self.ready and self.force_complete()

    def on_complete(self) -> None:
        self.calls.append("complete")

    def on_expiration(self) -> None:
        self.calls.append("expired")


def test_a_complete_operation_is_not_tried_again() -> None:
    operation = Operation(ready=True)
    assert operation.safe_try_complete()
    assert not operation.safe_try_complete()
    assert operation.calls == ["try", "complete"]


def test_an_operation_that_cannot_complete_stays_open() -> None:
    operation = Operation()
    assert not operation.safe_try_complete()
    assert not operation.is_completed()
    assert operation.calls == ["try"]


def test_what_else_is_to_be_done_comes_between_two_tries() -> None:
    operation = Operation()
    assert not operation.safe_try_complete_or_else(lambda: operation.calls.append("else"))
    assert operation.calls == ["try", "else", "try"]


def test_an_operation_that_completes_at_once_needs_nothing_else() -> None:
    operation = Operation(ready=True)
    assert operation.safe_try_complete_or_else(lambda: operation.calls.append("else"))
    assert operation.calls == ["try", "complete"]


def test_an_operation_that_became_ready_meanwhile_is_completed_by_the_second_try() -> None:
    operation = Operation()

    def becomes_ready() -> None:
        operation.ready = True

    assert operation.safe_try_complete_or_else(becomes_ready)
    assert operation.calls == ["try", "try", "complete"]


def test_an_operation_that_somebody_completed_meanwhile_is_not_tried_again() -> None:
    operation = Operation()
    assert not operation.safe_try_complete_or_else(operation.run)
    assert operation.calls == ["try", "complete", "expired"]


def test_the_clock_comes_too_late_for_a_complete_operation() -> None:
    operation = Operation()
    operation.force_complete()
    operation.run()
    assert operation.calls == ["complete"]


def test_completing_takes_the_operation_out_of_its_timer() -> None:
    time = MockTime()
    timer = SystemTimer("test", time)
    operation = Operation()
    timer.add(operation)
    operation.force_complete()
    assert (len(timer), operation.is_cancelled()) == (0, True)


def test_an_answer_that_raises_is_not_given_twice() -> None:
    class Broken(Operation):
        def on_complete(self) -> None:
            super().on_complete()
            raise RuntimeError("no answer")

    operation = Broken(ready=True)
    with pytest.raises(RuntimeError, match="no answer"):
        operation.safe_try_complete()
    operation.run()
    assert not operation.safe_try_complete()
    assert operation.calls == ["try", "complete"]
    assert operation.is_completed()


def test_the_operation_is_complete_for_whoever_its_answer_asks() -> None:
    class Asking(Operation):
        def on_complete(self) -> None:
            self.calls.append(f"{self.is_completed()}, {self.safe_try_complete()}")

    operation = Asking(ready=True)
    operation.safe_try_complete()
    assert operation.calls == ["try", "True, False"]


def test_tries_hold_the_lock_that_operations_share() -> None:
    lock = threading.RLock()
    held: list[bool] = []

    class Looking(Operation):
        def try_complete(self) -> bool:
            held.append(free_for_others(lock))
            return False

    def free_for_others(lock: threading.RLock) -> bool:
        answers: list[bool] = []
        other = threading.Thread(target=lambda: answers.append(lock.acquire(blocking=False)))
        other.start()
        other.join()
        return answers[0]

    operation = Looking(lock=lock)
    operation.safe_try_complete()
    operation.safe_try_complete_or_else(lambda: held.append(free_for_others(lock)))
    assert held == [False] * 4
    assert free_for_others(lock)
