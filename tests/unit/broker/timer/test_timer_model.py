"""A timer of any tick and size runs what a plain list would run, whatever is added, cancelled and waited for."""

from __future__ import annotations

import attrs
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from harness.mock_time import MockTime
from kclient.broker.timer.system_timer import SystemTimer
from kclient.broker.timer.timing_wheel import TimerTask


@attrs.define(eq=False)
class Task(TimerTask):
    """A task that counts its runs; it may add another one, or cancel one, when it runs."""

    due_ms: int = 0
    runs: int = 0
    then: Task | None = None
    victim: Task | None = None
    timer: SystemTimer | None = None

    def run(self) -> None:
        self.runs += 1
        if self.victim is not None:
            self.victim.cancel()
        if self.then is not None and self.timer is not None:
            self.timer.add(self.then)


class TimerMachine(RuleBasedStateMachine):
    """The model: the tasks that wait, with the times at which they are due."""

    def __init__(self) -> None:
        super().__init__()
        self.time = MockTime()
        self.waiting: list[Task] = []
        self.ended: list[Task] = []
        self.cancelled: list[tuple[Task, int]] = []

    @initialize(tick_ms=st.integers(1, 7), size=st.integers(2, 25))
    def make(self, tick_ms: int, size: int) -> None:
        self.tick_ms = tick_ms
        self.timer = SystemTimer("model", self.time, tick_ms=tick_ms, wheel_size=size)

    @rule(delay_ms=st.one_of(st.integers(-5, 60), st.integers(0, 100_000)))
    def add(self, delay_ms: int) -> None:
        task = Task(delay_ms, self.time.monotonic_ms() + max(delay_ms, 0))
        self.waiting.append(task)
        self.timer.add(task)

    @rule(data=st.data())
    def add_again(self, data: st.DataObject) -> None:
        """A task that is added once more has its new time alone."""
        if not self.waiting:
            return
        task = data.draw(st.sampled_from(self.waiting))
        if task.delay_ms > 2 * self.tick_ms:  # one that is due at once is not in the wheel any more
            task.due_ms = self.time.monotonic_ms() + task.delay_ms
            self.timer.add(task)

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        if self.waiting:
            task = data.draw(st.sampled_from(self.waiting))
            self.waiting.remove(task)
            task.cancel()
            self.cancelled.append((task, task.runs))

    @rule(ms=st.one_of(st.integers(0, 30), st.integers(0, 150_000)))
    def wait(self, ms: int) -> None:
        self.time.advance(ms)
        self._run_due()

    def _run_due(self) -> None:
        while self.timer.advance_clock(0):
            pass
        now_ms = self.time.monotonic_ms()
        for task in list(self.waiting):
            if task.runs:
                # Of one tick all run with the first of them.
                assert task.due_ms - self.tick_ms < now_ms, "it ran too early"
                self.waiting.remove(task)
                self.ended.append(task)
            else:
                assert task.due_ms > now_ms, "it should have run"

    @invariant()
    def nothing_runs_twice(self) -> None:
        assert all(task.runs <= 1 for task in self.ended)

    @invariant()
    def what_was_cancelled_does_not_run(self) -> None:
        assert all(task.runs == runs for task, runs in self.cancelled)

    @invariant()
    def no_more_waits_than_was_added(self) -> None:
        if hasattr(self, "timer"):
            assert 0 <= len(self.timer) <= len(self.waiting)

    def teardown(self) -> None:
        if hasattr(self, "timer"):
            self.time.advance(1_000_000)
            self._run_due()
            assert self.waiting == []
            assert len(self.timer) == 0


TestTimer = TimerMachine.TestCase
TestTimer.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)


def test_a_task_may_add_and_cancel_others_when_it_runs() -> None:
    time = MockTime()
    timer = SystemTimer("t", time)
    victim, later = Task(50), Task(10)
    first = Task(5, then=later, victim=victim, timer=timer)
    for task in (first, victim):
        timer.add(task)
    for _ in range(60):
        time.advance(1)
        while timer.advance_clock(0):
            pass
    assert (first.runs, later.runs, victim.runs, len(timer)) == (1, 1, 0, 0)
