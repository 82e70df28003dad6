"""SystemTime and Timer: deadlines, and waits that end."""

from __future__ import annotations

import threading

import pytest

from harness.mock_time import MockTime
from kclient.utils.time import SYSTEM_TIME, Timer


def test_a_timer_counts_down_and_can_be_reset() -> None:
    timer = Timer(SYSTEM_TIME, 60_000)
    assert 0 < timer.remaining_ms() <= 60_000
    assert not timer.is_expired()
    timer.reset(0)
    assert timer.is_expired()
    assert timer.remaining_ms() == 0


def test_waiting_on_a_condition_ends_when_it_is_notified() -> None:
    condition = threading.Condition()
    flag: list[bool] = []

    def set_flag() -> None:
        with condition:
            flag.append(True)
            condition.notify_all()

    thread = threading.Thread(target=set_flag)
    with condition:
        thread.start()
        assert SYSTEM_TIME.wait_for(condition, lambda: bool(flag), 10_000)
    thread.join()
    with condition:
        assert not SYSTEM_TIME.wait_for(condition, lambda: False, 1)


def test_a_timer_is_expired_from_its_deadline_on() -> None:
    time = MockTime(monotonic_ms=1000)
    timer = time.timer(50)
    assert (timer.started_ms, timer.deadline_ms, timer.timeout_ms) == (1000, 1050, 50)
    time.advance(49)
    assert (timer.remaining_ms(), timer.elapsed_ms(), timer.is_expired()) == (1, 49, False)
    time.advance(1)
    assert (timer.remaining_ms(), timer.is_expired()) == (0, True)
    time.advance(1000)
    assert (timer.remaining_ms(), timer.elapsed_ms()) == (0, 1050)


def test_a_timer_of_less_than_no_time_has_expired() -> None:
    time = MockTime()
    timer = Timer(time, -5)
    assert timer.is_expired()
    assert timer.deadline_ms == timer.started_ms == time.monotonic_ms()
    timer.reset(-1)
    assert timer.remaining_ms() == 0


def test_a_reset_begins_anew_from_now() -> None:
    time = MockTime(monotonic_ms=0)
    timer = Timer(time, 10)
    time.advance(500)
    timer.reset(20)
    assert (timer.started_ms, timer.deadline_ms, timer.timeout_ms) == (500, 520, 20)
    assert timer.elapsed_ms() == 0


def test_setting_the_wall_clock_moves_no_deadline() -> None:
    time = MockTime()
    timer = Timer(time, 10)
    time.set_wall_ms(0)
    assert timer.remaining_ms() == 10


@pytest.mark.parametrize("timeout_ms", [2**63, 10**30])
def test_a_wait_longer_than_a_lock_accepts_is_a_wait_all_the_same(timeout_ms: int) -> None:
    condition, lock = threading.Condition(), threading.Lock()
    with condition:
        assert SYSTEM_TIME.wait_for(condition, lambda: True, timeout_ms)
    assert SYSTEM_TIME.wait_for_lock(lock, timeout_ms)


@pytest.mark.parametrize("timeout_ms", [0, -1, -(2**40)])
def test_no_time_and_less_are_one_look(timeout_ms: int) -> None:
    condition, lock = threading.Condition(), threading.Lock()
    with condition:
        assert not SYSTEM_TIME.wait_for(condition, lambda: False, timeout_ms)
        assert SYSTEM_TIME.wait_for(condition, lambda: True, timeout_ms)
    assert SYSTEM_TIME.wait_for_lock(lock, timeout_ms)
    assert not SYSTEM_TIME.wait_for_lock(lock, timeout_ms)
    SYSTEM_TIME.sleep_ms(timeout_ms)
