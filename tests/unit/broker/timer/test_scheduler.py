"""Background tasks run once or over and over, one at a time."""

from __future__ import annotations

import logging
import threading

import pytest

from harness.mock_time import MockTime
from harness.waiting import wait_until
from kclient.broker.timer import Scheduler


def run_due(scheduler: Scheduler, time: MockTime, after_ms: int) -> None:
    time.advance(after_ms)
    while scheduler.timer.advance_clock(0):
        pass


def test_a_task_scheduled_once_runs_once() -> None:
    time = MockTime()
    scheduler = Scheduler("test", time)
    runs: list[int] = []
    scheduler.schedule_once("one", lambda: runs.append(1), 100)
    run_due(scheduler, time, 99)
    assert runs == []
    run_due(scheduler, time, 1)
    run_due(scheduler, time, 1000)
    assert runs == [1]


def test_a_periodic_task_runs_until_it_is_cancelled_though_it_raises(
    caplog: pytest.LogCaptureFixture,
) -> None:
    time = MockTime()
    scheduler = Scheduler("test", time)
    runs: list[int] = []

    def body() -> None:
        runs.append(time.monotonic_ms())
        if len(runs) == 1:
            raise RuntimeError("first time")

    task = scheduler.schedule("periodic", body, 10, 50)
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            run_due(scheduler, time, 50)
    assert len(runs) == 3
    assert "periodic" in caplog.text
    task.cancel()
    run_due(scheduler, time, 500)
    assert len(runs) == 3


def test_a_periodic_task_may_cancel_itself() -> None:
    time = MockTime()
    scheduler = Scheduler("test", time)
    runs: list[int] = []

    def body() -> None:
        runs.append(1)
        task.cancel()

    task = scheduler.schedule("once after all", body, 1, 1)
    run_due(scheduler, time, 10)
    run_due(scheduler, time, 10)
    assert runs == [1]


def test_a_period_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="period"):
        Scheduler("test", MockTime()).schedule("bad", lambda: None, 0, 0)


def test_shutdown_waits_for_the_task_that_is_running_and_drops_the_rest() -> None:
    scheduler = Scheduler("test")
    scheduler.startup()
    began, go = threading.Event(), threading.Event()
    done: list[str] = []

    def slow() -> None:
        began.set()
        go.wait(10)
        done.append("slow")

    scheduler.schedule_once("slow", slow)
    scheduler.schedule_once("never", lambda: done.append("never"), 60_000)
    assert began.wait(10)
    closer = threading.Thread(target=scheduler.shutdown)
    closer.start()
    assert done == []
    go.set()
    closer.join(10)
    assert done == ["slow"]
    scheduler.shutdown()
    wait_until(lambda: not any(thread.name == "scheduler-test" for thread in threading.enumerate()))
