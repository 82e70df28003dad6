"""Tasks run when they are due, not before, and not when cancelled."""

from __future__ import annotations

import logging
import random
import threading

import pytest

from harness.mock_time import MockTime
from harness.waiting import wait_until
from kclient.broker.timer import SystemTimer, TimerTask


class Note(TimerTask):
    def __init__(self, delay_ms: int, notes: list[object], name: object = None) -> None:
        super().__init__(delay_ms)
        self.notes = notes
        self.name = delay_ms if name is None else name

    def run(self) -> None:
        self.notes.append(self.name)


@pytest.fixture
def time() -> MockTime:
    return MockTime()


@pytest.fixture
def timer(time: MockTime) -> SystemTimer:
    return SystemTimer("test", time)


def advance(timer: SystemTimer, time: MockTime, duration_ms: int) -> None:
    time.advance(duration_ms)
    while timer.advance_clock(0):
        pass


def test_a_task_runs_at_its_time_and_not_before(timer: SystemTimer, time: MockTime) -> None:
    notes: list[object] = []
    timer.add(Note(1000, notes))
    advance(timer, time, 999)
    assert notes == []
    advance(timer, time, 1)
    assert notes == [1000]
    assert len(timer) == 0


def test_tasks_run_in_order_of_their_times_over_all_levels(timer: SystemTimer, time: MockTime) -> None:
    notes: list[object] = []
    delays = [*range(20), 20, 399, 400, 401, 7999, 8000, 160_001, 5_000_000]
    shuffled = delays.copy()
    random.Random(7).shuffle(shuffled)
    for delay_ms in shuffled:
        timer.add(Note(delay_ms, notes))
    start = time.monotonic_ms()
    for delay_ms in delays:
        advance(timer, time, start + delay_ms - time.monotonic_ms())
        assert notes[-1] == delay_ms
    assert notes == delays


def test_a_jump_of_the_clock_runs_everything_up_to_it_in_order(timer: SystemTimer, time: MockTime) -> None:
    notes: list[object] = []
    for delay_ms in (5000, 3, 450, 21):
        timer.add(Note(delay_ms, notes))
    advance(timer, time, 10_000)
    assert notes == [3, 21, 450, 5000]


def test_a_cancelled_task_never_runs(timer: SystemTimer, time: MockTime) -> None:
    notes: list[object] = []
    tasks = [Note(delay_ms, notes) for delay_ms in (0, 5, 50_000)]
    for task in tasks:
        timer.add(task)
        task.cancel()
    assert len(timer) == 0
    advance(timer, time, 100_000)
    assert notes == []


def test_a_task_cancelled_before_it_is_added_never_runs(timer: SystemTimer, time: MockTime) -> None:
    notes: list[object] = []
    task = Note(5, notes)
    task.cancel()
    timer.add(task)
    advance(timer, time, 10)
    assert notes == []


def test_adding_a_task_again_moves_it(timer: SystemTimer, time: MockTime) -> None:
    notes: list[object] = []
    task = Note(10, notes)
    timer.add(task)
    task.delay_ms = 30
    timer.add(task)
    assert len(timer) == 1
    advance(timer, time, 20)
    assert notes == []
    advance(timer, time, 10)
    assert notes == [10]


def test_a_running_task_may_add_and_cancel_others(timer: SystemTimer, time: MockTime) -> None:
    notes: list[object] = []
    victim = Note(6, notes)

    class Busy(TimerTask):
        def run(self) -> None:
            victim.cancel()
            timer.add(Note(0, notes, "added"))

    timer.add(Busy(5))
    timer.add(victim)
    advance(timer, time, 5)
    advance(timer, time, 100)
    assert notes == ["added"]


def test_an_error_of_a_task_is_logged_and_the_others_run(
    timer: SystemTimer, time: MockTime, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(TimerTask):
        def run(self) -> None:
            raise RuntimeError("boom")

    notes: list[object] = []
    timer.add(Broken(1))
    timer.add(Note(1, notes))
    with caplog.at_level(logging.ERROR):
        advance(timer, time, 1)
    assert notes == [1]
    assert "boom" in caplog.text


def test_an_earlier_task_wakes_the_waiting_thread() -> None:
    timer = SystemTimer("real")
    notes: list[object] = []
    stop = threading.Event()

    def turn() -> None:
        while not stop.is_set():
            timer.advance_clock(60_000)

    thread = threading.Thread(target=turn)
    thread.start()
    try:
        timer.add(Note(50_000, notes))
        timer.add(Note(1, notes))
        wait_until(lambda: notes == [1])
    finally:
        stop.set()
        timer.close()
        thread.join(10)
    assert not thread.is_alive()


def test_a_closed_timer_takes_nothing_and_does_not_wait(timer: SystemTimer) -> None:
    notes: list[object] = []
    timer.add(Note(0, notes))
    timer.close()
    timer.add(Note(0, notes))
    assert not timer.advance_clock(60_000)
    assert notes == []
    assert len(timer) == 0
