from __future__ import annotations

import threading

import pytest

from harness.mock_time import MockTime
from harness.waiting import wait_until


def test_both_clocks_move_when_told_and_never_by_themselves() -> None:
    time = MockTime(monotonic_ms=5, wall_ms=7)
    assert (time.monotonic_ms(), time.wall_ms()) == (5, 7)
    time.advance(10)
    time.sleep_ms(1)
    assert (time.monotonic_ms(), time.wall_ms()) == (16, 18)
    with pytest.raises(ValueError, match="backwards"):
        time.advance(-1)


def test_the_wall_clock_can_be_set_back_without_the_other_one() -> None:
    time = MockTime(monotonic_ms=5, wall_ms=7)
    time.set_wall_ms(0)
    assert (time.monotonic_ms(), time.wall_ms()) == (5, 0)


def test_a_wait_ends_with_the_predicate_or_when_another_thread_moves_the_clock() -> None:
    time = MockTime()
    condition = threading.Condition()
    results: list[bool] = []
    flag = threading.Event()

    def wait(timeout_ms: int) -> None:
        with condition:
            results.append(time.wait_for(condition, flag.is_set, timeout_ms))

    timed = threading.Thread(target=wait, args=(100,))
    timed.start()
    with condition:
        time.advance(100)  # with the lock held: nothing may deadlock
    timed.join(10)
    assert results == [False]
    notified = threading.Thread(target=wait, args=(100,))
    notified.start()
    with condition:
        flag.set()
        condition.notify_all()
    wait_until(lambda: len(results) == 2)
    notified.join(10)
    assert results == [False, True]


def test_a_clock_that_ticks_by_itself_lets_a_single_thread_time_out() -> None:
    time = MockTime(auto_tick_ms=50)
    condition = threading.Condition()
    with condition:
        assert not time.wait_for(condition, lambda: False, 1000)
    assert time.timer(10).is_expired()
