"""Delayed operations of a group coordinator, which waits for members to join, to sync, and to be heard of."""

from __future__ import annotations

from typing import Protocol

from kclient.broker.group.group import Group
from kclient.broker.purgatory import DelayedOperation
from kclient.broker.timer import TimerTask


class RebalanceDriver(Protocol):
    """The methods that the delayed operations call. Each takes the group's lock itself."""

    def try_complete_join(self, group: Group, join: DelayedJoin) -> bool:
        """Complete `join` if every member has joined."""

    def complete_join(self, group: Group) -> None:
        """Begin the next generation with whoever has joined."""

    def extend_initial_join(self, group: Group, remaining_ms: int) -> None:
        """The first delay of a new group is over: wait on if more members came meanwhile."""

    def check_session(self, group: Group, member_id: str) -> None:
        """Remove the member if it was not heard of in time; look again later otherwise."""

    def pending_member_expired(self, group: Group, member_id: str) -> None:
        """An id was given out and nobody joined with it."""

    def pending_sync_expired(self, group: Group, generation_id: int) -> None:
        """Members did not ask for their assignment in time."""


class DelayedJoin(DelayedOperation):
    """A rebalance: complete when all known members have joined or the rebalance timeout is over."""

    __slots__ = ("_driver", "_group")

    def __init__(self, driver: RebalanceDriver, group: Group, rebalance_timeout_ms: int) -> None:
        super().__init__(rebalance_timeout_ms, group.lock)
        self._driver = driver
        self._group = group

    def try_complete(self) -> bool:
        return self._driver.try_complete_join(self._group, self)

    def on_complete(self) -> None:
        self._driver.complete_join(self._group)


class InitialDelayedJoin(DelayedJoin):
    """The first rebalance of a new group.

    It waits, though all known members have joined, because more usually start at the same time, and each of
    them coming later would cost everyone a rebalance (KIP-134). Every newcomer prolongs the wait up to the
    timeout.
    """

    __slots__ = ("_remaining_ms",)

    def __init__(self, driver: RebalanceDriver, group: Group, delay_ms: int, remaining_ms: int) -> None:
        super().__init__(driver, group, delay_ms)
        self._remaining_ms = remaining_ms

    def try_complete(self) -> bool:
        return False

    def on_complete(self) -> None:
        self._driver.extend_initial_join(self._group, self._remaining_ms)


class SessionExpiry(TimerTask):
    """Looks after one member's session.

    A heartbeat only moves the member's deadline. This task finds out when it runs and goes to sleep again, so
    that the timer is touched once a session and not once a heartbeat.
    """

    __slots__ = ("_driver", "_group", "_member_id")

    def __init__(self, driver: RebalanceDriver, group: Group, member_id: str, delay_ms: int) -> None:
        super().__init__(delay_ms)
        self._driver = driver
        self._group = group
        self._member_id = member_id

    def run(self) -> None:
        self._driver.check_session(self._group, self._member_id)


class PendingMemberExpiry(TimerTask):
    """Forgets an id that was given out and not used."""

    __slots__ = ("_driver", "_group", "_member_id")

    def __init__(self, driver: RebalanceDriver, group: Group, member_id: str, delay_ms: int) -> None:
        super().__init__(delay_ms)
        self._driver = driver
        self._group = group
        self._member_id = member_id

    def run(self) -> None:
        self._driver.pending_member_expired(self._group, self._member_id)


class PendingSyncExpiry(TimerTask):
    """Ends the wait for members that joined a generation and do not ask for their assignment."""

    __slots__ = ("_driver", "_generation_id", "_group")

    def __init__(self, driver: RebalanceDriver, group: Group, generation_id: int, delay_ms: int) -> None:
        super().__init__(delay_ms)
        self._driver = driver
        self._group = group
        self._generation_id = generation_id

    def run(self) -> None:
        self._driver.pending_sync_expired(self._group, self._generation_id)
