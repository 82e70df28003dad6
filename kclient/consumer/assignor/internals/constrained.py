"""The division among members that all subscribe to the same topics: each gets as many as any other, or one more."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable

from kclient.common.topic_partition import TopicPartition
from kclient.consumer.assignor.internals.java_order import hash_map_order
from kclient.consumer.assignor.internals.ownership import Ownership
from kclient.consumer.assignor.internals.racks import Racks


class ConstrainedAssignment:
    """One division in the making: members keep what they own up to their share, then the rest is dealt out.

    Where racks matter, members keep and are dealt only what is near to them, as long as there is such.
    """

    __slots__ = (
        "_at_quota",
        "_larger_shares",
        "_quota",
        "_racks",
        "_under_quota",
        "assigned",
    )

    def __init__(self, partitions: list[TopicPartition], racks: Racks, ownership: Ownership) -> None:
        self.assigned: dict[str, list[TopicPartition]] = {member_id: [] for member_id in ownership.owned}
        self._racks = racks
        self._quota, self._larger_shares = divmod(len(partitions), len(self.assigned))
        self._under_quota: list[str] = []
        self._at_quota: list[str] = []  # those that may get one more
        # The order decides who keeps one more. It is Java's, so that nothing moves when a Java member leads instead.
        for member_id in hash_map_order(ownership.owned):
            self._keep_owned(member_id, ownership.owned[member_id])
        self._under_quota.sort()
        self._at_quota.sort()
        kept = frozenset[TopicPartition]().union(*self.assigned.values())
        unassigned = racks.fewest_members_first([tp for tp in partitions if tp not in kept])
        if racks.aware:
            unassigned = self._deal_out_near(unassigned)
        self._deal_out(unassigned)

    def _keep_owned(self, member_id: str, owned: Iterable[TopicPartition]) -> None:
        near = sorted(
            (tp for tp in owned if not self._racks.mismatch(member_id, tp)),
            key=lambda tp: (tp.partition, tp.topic),
        )
        if len(near) < self._quota:
            self._under_quota.append(member_id)
            room = len(near)
        elif len(near) > self._quota and self._larger_shares:
            room = self._quota + 1
            self._larger_shares -= 1
            if not self._larger_shares:
                self._at_quota.clear()
        else:
            room = self._quota
            if self._larger_shares:
                self._at_quota.append(member_id)
        self.assigned[member_id] += near[:room]

    def _deal_out_near(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Give partitions to members in their racks, in turn, and return the partitions for which there are none."""
        under_quota = _Turns(self._under_quota, self._racks)
        at_quota = _Turns(self._at_quota, self._racks)
        left = []
        turn = 0
        for tp in partitions:
            near = self._racks.of_partition[tp]
            place = under_quota.next_in(near, turn)
            if place is not None:
                turn = place + 1
                member_id = under_quota.row[place]
                self.assigned[member_id].append(tp)
                if len(self.assigned[member_id]) >= self._quota:
                    under_quota.remove(place)
                    if self._larger_shares:
                        at_quota.add(member_id)
                continue
            place = at_quota.next_in(near, 0) if self._larger_shares else None
            if place is None:
                left.append(tp)
                continue
            self.assigned[at_quota.row[place]].append(tp)
            at_quota.remove(place)
            self._larger_shares -= 1
        self._under_quota = under_quota.left()
        self._at_quota = at_quota.left() if self._larger_shares else []
        return left

    def _deal_out(self, partitions: list[TopicPartition]) -> None:
        """Give partitions to members in turn: first up to the quota, then one more to those that may have it."""
        under_quota, at_quota = deque(self._under_quota), deque(self._at_quota)
        for tp in partitions:
            if not under_quota:
                self.assigned[at_quota.popleft()].append(tp)
                continue
            member_id = under_quota.popleft()
            self.assigned[member_id].append(tp)
            if len(self.assigned[member_id]) < self._quota:
                under_quota.append(member_id)
            else:
                at_quota.append(member_id)


class _Turns:
    """Members in a row, to be found by their racks; a place in the row stays the same when others leave it."""

    __slots__ = ("_gone", "_places", "_racks", "row")

    def __init__(self, members: Iterable[str], racks: Racks) -> None:
        self.row: list[str] = []
        self._racks = racks
        self._gone: set[int] = set()
        self._places: dict[str, list[int]] = {}  # of those that are left, in order, by rack
        for member_id in members:
            self.add(member_id)

    def add(self, member_id: str) -> None:
        """Add a member at the end."""
        rack = self._racks.of_member.get(member_id)
        if rack is not None:
            self._places.setdefault(rack, []).append(len(self.row))
        self.row.append(member_id)

    def next_in(self, racks: Iterable[str], start: int) -> int | None:
        """The place of the first member in one of `racks`, from `start` to the end and then from the beginning."""
        first = after = None
        for rack in racks:
            places = self._places.get(rack)
            if not places:
                continue
            if first is None or places[0] < first:
                first = places[0]
            at = bisect_left(places, start)
            if at < len(places) and (after is None or places[at] < after):
                after = places[at]
        return first if after is None else after

    def remove(self, place: int) -> None:
        """Take out the member at `place`."""
        self._gone.add(place)
        places = self._places[self._racks.of_member[self.row[place]]]
        del places[bisect_left(places, place)]

    def left(self) -> list[str]:
        """The members that are left, in order."""
        return [member_id for place, member_id in enumerate(self.row) if place not in self._gone]
