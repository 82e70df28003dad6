"""Operations in a purgatory are completed once: by their condition as soon as its key is looked at, or by time."""

from __future__ import annotations

import attrs
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from harness.mock_time import MockTime
from kclient.broker.purgatory import DelayedOperation, DelayedOperationPurgatory

KEYS = st.sampled_from("abc")


@attrs.define(eq=False)
class Counting(DelayedOperation):
    """An operation that is complete once the keys it watches have counted far enough."""

    counts: dict[str, int]
    keys: tuple[str, ...]
    wanted: int
    due_ms: int
    completions: int = 0
    expirations: int = 0

    @property
    def is_due(self) -> bool:
        return sum(self.counts[key] for key in self.keys) >= self.wanted

    def try_complete(self) -> bool:
        return self.is_due and self.force_complete()

    def on_complete(self) -> None:
        self.completions += 1

    def on_expiration(self) -> None:
        self.expirations += 1


class PurgatoryMachine(RuleBasedStateMachine):
    """The model: the operations that wait, and what the keys have counted."""

    def __init__(self) -> None:
        super().__init__()
        self.time = MockTime()
        self.purgatory: DelayedOperationPurgatory[Counting] = DelayedOperationPurgatory(
            "model", self.time, purge_interval=3, reaper_enabled=False
        )
        self.counts = dict.fromkeys("abc", 0)
        self.all: list[Counting] = []

    @rule(keys=st.sets(KEYS, min_size=1), more=st.integers(0, 4), delay_ms=st.integers(1, 500))
    def watch(self, keys: set[str], more: int, delay_ms: int) -> None:
        wanted = sum(self.counts[key] for key in keys) + more
        due_ms = self.time.monotonic_ms() + delay_ms
        operation = Counting(delay_ms, self.counts, tuple(keys), wanted, due_ms)
        self.all.append(operation)
        assert self.purgatory.try_complete_else_watch(operation, keys) == (more == 0)

    @rule(key=KEYS)
    def count(self, key: str) -> None:
        self.counts[key] += 1
        before = sum(operation.completions for operation in self.all)
        completed = self.purgatory.check_and_complete(key)
        assert sum(operation.completions for operation in self.all) == before + completed

    @rule(ms=st.integers(0, 300))
    def wait(self, ms: int) -> None:
        self.time.advance(ms)
        self.purgatory.advance_clock(0)
        now_ms = self.time.monotonic_ms()
        for operation in self.all:
            assert operation.is_completed() or operation.due_ms > now_ms

    @rule()
    def purge(self) -> None:
        self.purgatory.purge()
        waiting = [operation for operation in self.all if not operation.is_completed()]
        assert self.purgatory.watched == sum(len(operation.keys) for operation in waiting)

    @invariant()
    def each_is_completed_once_and_for_a_reason(self) -> None:
        now_ms = self.time.monotonic_ms()
        for operation in self.all:
            assert operation.completions == operation.is_completed()
            assert operation.expirations <= operation.completions
            assert operation.is_completed() == (operation.is_due or operation.expirations == 1)
            assert not operation.expirations or operation.due_ms <= now_ms

    @invariant()
    def only_those_that_wait_have_timers(self) -> None:
        assert self.purgatory.delayed == sum(not operation.is_completed() for operation in self.all)

    def teardown(self) -> None:
        self.time.advance(1000)
        self.purgatory.advance_clock(0)
        assert all(operation.completions == 1 for operation in self.all)
        self.purgatory.shutdown()


TestPurgatory = PurgatoryMachine.TestCase
TestPurgatory.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
