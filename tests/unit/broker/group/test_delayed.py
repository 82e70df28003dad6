"""Operations of a coordinator that waits: the one that asks whether all have joined, and the one that does not."""

from __future__ import annotations

from typing import cast

from harness.mock_time import MockTime
from kclient.broker.group.delayed import DelayedJoin, Expiry, InitialDelayedJoin
from kclient.broker.group.group import Group
from kclient.broker.group.rebalance import Rebalancer
from kclient.broker.purgatory import DelayedOperationPurgatory
from kclient.broker.timer import SystemTimer


class Noting:
    """The part of a rebalancer that the operations call."""

    def __init__(self) -> None:
        self.all_joined = False
        self.calls: list[tuple[object, ...]] = []

    def try_complete_join(self, group: Group, join: DelayedJoin) -> bool:
        return self.all_joined and join.force_complete()

    def complete_join(self, group: Group) -> None:
        self.calls.append(("complete", group.id))

    def extend_initial_join(self, group: Group, remaining_ms: int) -> None:
        self.calls.append(("extend", group.id, remaining_ms))


def rebalancer(noting: Noting) -> Rebalancer:
    return cast("Rebalancer", noting)


def test_a_rebalance_is_complete_when_the_last_member_has_joined() -> None:
    noting = Noting()
    join = DelayedJoin(rebalancer(noting), Group("g", 0), 1000)
    assert not join.safe_try_complete()
    assert noting.calls == []
    noting.all_joined = True
    assert join.safe_try_complete()
    assert noting.calls == [("complete", "g")]


def test_a_rebalance_ends_at_its_timeout_without_those_who_are_missing() -> None:
    noting, time = Noting(), MockTime()
    purgatory: DelayedOperationPurgatory[DelayedJoin] = DelayedOperationPurgatory(
        "test", time, reaper_enabled=False
    )
    purgatory.try_complete_else_watch(DelayedJoin(rebalancer(noting), Group("g", 0), 1000), ["g"])
    time.advance(999)
    purgatory.advance_clock(0)
    assert noting.calls == []
    time.advance(1)
    purgatory.advance_clock(0)
    assert noting.calls == [("complete", "g")]
    purgatory.shutdown()


def test_the_first_rebalance_waits_though_all_have_joined_and_is_told_how_long_it_may_go_on() -> None:
    noting = Noting()
    noting.all_joined = True
    join = InitialDelayedJoin(rebalancer(noting), Group("g", 0), 300, 700)
    assert join.delay_ms == 300
    assert not join.safe_try_complete()
    join.run()
    assert noting.calls == [("extend", "g", 700)]


def test_the_group_is_looked_at_with_its_own_lock() -> None:
    group = Group("g", 0)
    assert DelayedJoin(rebalancer(Noting()), group, 1000).lock is group.lock
    assert InitialDelayedJoin(rebalancer(Noting()), group, 1000, 0).lock is group.lock


def test_an_expiry_acts_once_unless_it_is_cancelled() -> None:
    time = MockTime()
    timer = SystemTimer("test", time)
    acts: list[str] = []
    kept, cancelled = Expiry(100, lambda: acts.append("kept")), Expiry(100, lambda: acts.append("cancelled"))
    timer.add(kept)
    timer.add(cancelled)
    cancelled.cancel()
    time.advance(100)
    timer.advance_clock(0)
    time.advance(100)
    timer.advance_clock(0)
    assert acts == ["kept"]
