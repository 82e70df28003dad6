"""Delayed operations of a group coordinator, which waits for members to join, to sync, and to be heard of."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs

from kclient.broker.group.group import Group
from kclient.broker.purgatory import DelayedOperation
from kclient.broker.timer import TimerTask

if TYPE_CHECKING:
    from kclient.broker.group.rebalance import Rebalancer


class DelayedJoin(DelayedOperation):
    """A rebalance: complete when all known members have joined or the rebalance timeout is over."""

    __slots__ = ("_group", "_rebalancer")

    def __init__(self, rebalancer: Rebalancer, group: Group, rebalance_timeout_ms: int) -> None:
        super().__init__(rebalance_timeout_ms, lock=group.lock)
        self._rebalancer = rebalancer
        self._group = group

    def try_complete(self) -> bool:
        return self._rebalancer.try_complete_join(self._group, self)

    def on_complete(self) -> None:
        self._rebalancer.complete_join(self._group)


class InitialDelayedJoin(DelayedJoin):
    """The first rebalance of a new group.

    It waits, though all known members have joined, because more usually start at the same time, and each of
    them coming later would cost everyone a rebalance (KIP-134). Every newcomer prolongs the wait up to the
    timeout.
    """

    __slots__ = ("_remaining_ms",)

    def __init__(self, rebalancer: Rebalancer, group: Group, delay_ms: int, remaining_ms: int) -> None:
        super().__init__(rebalancer, group, delay_ms)
        self._remaining_ms = remaining_ms

    def try_complete(self) -> bool:
        return False

    def on_complete(self) -> None:
        self._rebalancer.extend_initial_join(self._group, self._remaining_ms)


@attrs.define(eq=False)
class Expiry(TimerTask):
    """Calls `act`, which takes the group's lock itself, when the time is over."""

    _act: Callable[[], None]

    def run(self) -> None:
        self._act()
