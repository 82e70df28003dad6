"""The division among members that subscribe to different topics: as even as their subscriptions let it be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kclient.common.topic_partition import TopicPartition
from kclient.consumer.assignor.base import Subscription
from kclient.consumer.assignor.internals.movements import PartitionMovements
from kclient.consumer.assignor.internals.ownership import Ownership
from kclient.consumer.assignor.internals.racks import Racks


class GeneralAssignment:
    """One division in the making: members keep what they own, the rest goes to those with the fewest partitions, and
    then partitions move from members with many to members with few as long as that makes it more even.
    """

    __slots__ = (
        "_assigned",
        "_earlier",
        "_members_of",
        "_movements",
        "_owner_of",
        "_racks",
        "_sizes",
    )

    def __init__(
        self,
        topics: Mapping[str, list[TopicPartition]],
        subscriptions: Mapping[str, Subscription],
        racks: Racks,
        ownership: Ownership,
    ) -> None:
        self._racks = racks
        self._earlier = ownership.earlier
        self._members_of = _members_by_topic(topics, subscriptions)
        self._movements = PartitionMovements()
        self._owner_of: dict[TopicPartition, str] = {}
        self._assigned: dict[str, dict[TopicPartition, None]] = {}
        must_revoke = False
        for member_id, owned in ownership.owned.items():
            subscribed = frozenset(subscriptions[member_id].topics)
            kept = [tp for tp in owned if tp.topic in subscribed and not racks.mismatch(member_id, tp)]
            must_revoke |= len(kept) < len(owned)
            self._assigned[member_id] = dict.fromkeys(kept)
            self._owner_of.update(dict.fromkeys(kept, member_id))
        self._sizes = {member_id: len(owned) for member_id, owned in self._assigned.items()}
        # Topics that few members subscribe to come first: there is less choice for them.
        in_order = sorted(topics, key=lambda topic: (len(self._members_of[topic]), topic))
        partitions = [tp for topic in in_order for tp in topics[topic]]
        unassigned = [tp for tp in partitions if tp not in self._owner_of]
        self._assign(unassigned)
        if not must_revoke:
            # New partitions may be enough to even it out; nobody has to give up anything then.
            self._even_out(unassigned)
        self._even_out(partitions)

    @property
    def assigned(self) -> dict[str, list[TopicPartition]]:
        """The division, by member."""
        return {member_id: list(partitions) for member_id, partitions in self._assigned.items()}

    def _assign(self, unassigned: list[TopicPartition]) -> None:
        if self._racks.aware:
            unassigned = self._assign_near(unassigned)
        for tp in unassigned:
            self._move(tp, self._least_loaded(self._members_of[tp.topic]))

    def _assign_near(self, unassigned: list[TopicPartition]) -> list[TopicPartition]:
        """Give partitions to members in their racks, and return the partitions for which there are none."""
        left = []
        near: dict[tuple[str, frozenset[str]], list[str]] = {}
        for tp in unassigned:
            key = tp.topic, self._racks.of_partition[tp]
            members = near.get(key)
            if members is None:
                members = [each for each in self._members_of[tp.topic] if not self._racks.mismatch(each, tp)]
                near[key] = members
            if members:
                self._move(tp, self._least_loaded(members))
            else:
                left.append(tp)
        return left

    def _least_loaded(self, members: list[str]) -> str:
        """The member with the fewest partitions; of several, the first."""
        return min(members, key=self._sizes.__getitem__)

    def _move(self, tp: TopicPartition, member_id: str) -> None:
        old = self._owner_of.get(tp)
        if old is not None:
            del self._assigned[old][tp]
            self._sizes[old] -= 1
        self._assigned[member_id][tp] = None
        self._sizes[member_id] += 1
        self._owner_of[tp] = member_id

    def _even_out(self, partitions: list[TopicPartition]) -> None:
        """Move partitions to members that have at least two less, as long as there are such.

        Each such move makes the division more even, so there is an end to it.
        """
        moved = True
        least: dict[str, str] = {}  # by topic, as long as nothing moves
        while moved:
            moved = False
            for tp in partitions:
                size = self._sizes[self._owner_of[tp]]
                members = self._members_of[tp.topic]
                to = self._earlier.get(tp)
                if to is None or to not in members or size <= self._sizes[to] + 1:
                    to = least.get(tp.topic)
                    if to is None:
                        to = least[tp.topic] = self._least_loaded(members)
                    if size <= self._sizes[to] + 1:
                        continue
                self._reassign(tp, to)
                least.clear()
                moved = True

    def _reassign(self, tp: TopicPartition, to: str) -> None:
        back = self._movements.to_take_back(tp, self._owner_of[tp], to)
        if back is not None and self._sizes[self._owner_of[back]] > self._sizes[to] + 1:
            tp = back
        self._movements.add(tp, self._owner_of[tp], to)
        self._move(tp, to)


def _members_by_topic(
    topics: Iterable[str], subscriptions: Mapping[str, Subscription]
) -> dict[str, list[str]]:
    members: dict[str, list[str]] = {topic: [] for topic in topics}
    for member_id in sorted(subscriptions):
        for topic in frozenset(subscriptions[member_id].topics):
            if topic in members:
                members[topic].append(member_id)
    return members
