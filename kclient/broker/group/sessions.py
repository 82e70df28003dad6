"""Sessions: noticing that members are gone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import attrs

from kclient.broker.group.delayed import Expiry
from kclient.broker.group.group import Group
from kclient.broker.group.member import Member
from kclient.broker.timer import SystemTimer
from kclient.utils.time import Time

NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000
"""The time that a new member may wait for its first generation. A member whose connection broke while its
JoinGroup request was parked would otherwise be waited for by every later rebalance."""


@attrs.define(eq=False)
class Sessions:
    """Deadlines of members. Called with the group's lock held.

    A heartbeat only moves the member's deadline. `check` is called when the first one is over, and asks for another
    look, so that the timer is touched once a session and not once a heartbeat.
    """

    _check: Callable[[Group, str], None]
    _timer: SystemTimer
    _time: Time

    def heard_of(self, group: Group, member: Member) -> None:
        """The member gave a sign of life: its session begins anew."""
        self._extend(group, member, member.session_timeout_ms)

    def begin_join(self, group: Group, member: Member) -> None:
        """A new member waits for its first generation."""
        self._extend(group, member, NEW_MEMBER_JOIN_TIMEOUT_MS)

    def remaining_ms(self, member: Member) -> int:
        """Time until the member's session is over; 0 or less if it is.

        While a request of it is parked it cannot send heartbeats, and need not.
        """
        parked = member.awaits_sync or (member.awaits_join and not member.is_new)
        if parked:
            return member.session_timeout_ms
        return member.deadline_ms - self._time.monotonic_ms()

    def look_again(self, group: Group, member: Member, delay_ms: int) -> None:
        """Look at the member's deadline in `delay_ms`."""
        if member.expiry is not None:
            member.expiry.cancel()
        member.expiry = Expiry(delay_ms, partial(self._check, group, member.member_id))
        self._timer.add(member.expiry)

    def _extend(self, group: Group, member: Member, timeout_ms: int) -> None:
        deadline_ms = self._time.monotonic_ms() + timeout_ms
        sooner = deadline_ms < member.deadline_ms
        member.deadline_ms = deadline_ms
        if member.expiry is None or sooner:
            self.look_again(group, member, timeout_ms)
