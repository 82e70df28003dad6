"""Steps: who waits, for how long, and what is put in order when nobody goes on."""

from __future__ import annotations

import threading

import pytest

from harness.mock_time import MockTime
from kclient.utils.futures import CompletableFuture
from kclient.utils.steps import Broadcast, Pause, Steps, run
from kclient.utils.time import SYSTEM_TIME


def waiting_for(*futures: CompletableFuture[None], ended: list[str]) -> Steps[int]:
    try:
        for future in futures:
            yield Pause(future, None)
        return len(futures)
    finally:
        ended.append("put in order")


def test_steps_without_a_wait_are_one_call() -> None:
    ended: list[str] = []
    assert run(waiting_for(ended=ended), SYSTEM_TIME) == 0
    assert ended


def test_each_wait_ends_with_its_future_from_another_thread() -> None:
    futures = [CompletableFuture[None]() for _ in range(3)]
    others = threading.Thread(target=lambda: [future.complete(None) for future in futures])
    others.start()
    assert run(waiting_for(*futures, ended=[]), SYSTEM_TIME) == 3
    others.join()


def test_a_wait_whose_time_is_over_goes_on_with_a_future_that_is_not_done() -> None:
    time = MockTime(auto_tick_ms=1)
    future: CompletableFuture[None] = CompletableFuture()
    timer = time.timer(50)

    def steps() -> Steps[bool]:
        yield Pause(future, timer)
        assert timer.is_expired()
        yield Pause(future, timer)  # does not wait any more
        return future.done()

    assert not run(steps(), time)


def test_what_the_steps_raise_comes_out() -> None:
    def steps() -> Steps[None]:
        yield Pause(CompletableFuture.completed(None), None)
        raise LookupError("no such thing")

    with pytest.raises(LookupError, match="no such thing"):
        run(steps(), SYSTEM_TIME)


def test_an_interrupt_of_a_wait_lets_the_steps_put_things_in_order() -> None:
    class Interrupted(MockTime):
        def wait_for_lock(self, lock: threading.Lock, timeout_ms: int) -> bool:
            raise KeyboardInterrupt

    ended: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        run(waiting_for(CompletableFuture(), ended=ended), Interrupted())
    assert ended


def test_all_who_wait_for_a_change_wait_for_the_same_one_and_later_ones_for_the_next() -> None:
    changes = Broadcast()
    changes.notify_all()
    first = changes.next()
    assert changes.next() is first
    assert not first.done()
    changes.notify_all()
    assert first.done()
    second = changes.next()
    assert second is not first
    assert not second.done()
