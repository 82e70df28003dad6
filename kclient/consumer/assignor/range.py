"""Per topic, consecutive partitions for each member; near to the member where racks are known (KIP-881)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar

from kclient.common.cluster import Cluster
from kclient.common.topic_partition import PartitionInfo, TopicPartition
from kclient.consumer.assignor.base import (
    Assignment,
    ConsumerPartitionAssignor,
    MemberInfo,
    Subscription,
    members_by_topic,
)


class RangeAssignor(ConsumerPartitionAssignor):
    """Divides each topic on its own: the sorted members get equal runs of consecutive partitions, the first ones
    one more where it does not come out even.

    Topics with the same number of partitions and the same members are divided alike, so partitions that belong
    together stay together. If members and replicas name racks, and the replicas are not in every rack anyway,
    each member first gets partitions with a replica in its own rack; the shares stay as even as before.
    """

    NAME: ClassVar[str] = "range"

    def assign(self, cluster: Cluster, subscriptions: Mapping[str, Subscription]) -> dict[str, Assignment]:
        assigned: dict[str, list[TopicPartition]] = {member_id: [] for member_id in subscriptions}
        shares = []
        for topic, members in sorted(members_by_topic(subscriptions).items()):
            partitions = cluster.partitions_for_topic(topic)
            if partitions:
                shares.append(_TopicShare(topic, partitions, members, assigned))
        rack_aware = any(share.rack_aware for share in shares)
        if rack_aware:
            _assign_near(shares)
        for share in shares:
            share.assign_ranges(lambda _member_id, _partition: True)
        return {
            member_id: Assignment(tuple(sorted(partitions) if rack_aware else partitions))
            for member_id, partitions in assigned.items()
        }


class _TopicShare:
    """The rest of one topic, and the number of its partitions that each member may still get."""

    __slots__ = (
        "_assigned",
        "_base",
        "_counts",
        "_extras",
        "_open",
        "_topic",
        "rack_aware",
        "racks",
        "racks_of",
    )

    def __init__(
        self,
        topic: str,
        partitions: Iterable[PartitionInfo],
        members: list[MemberInfo],
        assigned: dict[str, list[TopicPartition]],
    ) -> None:
        self._topic = topic
        self._assigned = assigned
        members = sorted(members, key=lambda member: member.sort_key)
        self.racks = {member.member_id: member.rack_id for member in members}
        self.racks_of = {
            info.partition: frozenset(node.rack for node in info.replicas if node.rack) for info in partitions
        }
        self._open = dict.fromkeys(self.racks_of)  # in order, with removal from anywhere
        self._counts = dict.fromkeys(self.racks, 0)
        self._base, self._extras = divmod(len(self._open), len(members))
        self.rack_aware = self._needs_racks()

    @property
    def group_key(self) -> tuple[tuple[tuple[str, str | None], ...], int]:
        """Equal for topics that are divided among the same members into the same number of partitions."""
        return tuple(self.racks.items()), len(self.racks_of)

    def _needs_racks(self) -> bool:
        everywhere = frozenset[str]().union(*self.racks_of.values())
        if everywhere.isdisjoint(rack for rack in self.racks.values() if rack):
            return False
        # Where every partition has a replica in every rack, any division is as near as any other.
        return any(racks != everywhere for racks in self.racks_of.values())

    def near(self, member_id: str, partition: int) -> bool:
        """Return True if the partition has a replica in the member's rack; a member without a rack is near to all."""
        rack = self.racks[member_id]
        return not rack or rack in self.racks_of.get(partition, ())

    def room(self, member_id: str) -> int:
        """The number of partitions that the member may still get."""
        return max(self._base + (self._extras > 0) - self._counts[member_id], 0)

    def give(self, member_id: str, partitions: Iterable[int]) -> None:
        for partition in partitions:
            del self._open[partition]
            self._assigned[member_id].append(TopicPartition(self._topic, partition))
            self._counts[member_id] += 1
        if self._counts[member_id] > self._base:
            self._extras -= 1

    def assign_ranges(self, may_have: Callable[[str, int], bool]) -> None:
        """Give each member in turn the first partitions that it may have, as many as it has room for."""
        for member_id in self.racks:
            if not self._open:
                return
            room = self.room(member_id)
            if room == 0:
                continue
            wanted = [partition for partition in self._open if may_have(member_id, partition)][:room]
            if wanted:
                self.give(member_id, wanted)


def _assign_near(shares: list[_TopicShare]) -> None:
    together: dict[object, list[_TopicShare]] = {}
    for share in shares:
        together.setdefault(share.group_key, []).append(share)
    for group in together.values():
        if len(group) > 1:
            _assign_near_together(group)
        elif group[0].rack_aware:
            group[0].assign_ranges(group[0].near)


def _assign_near_together(group: list[_TopicShare]) -> None:
    """Give the same partition of all topics of `group` to a member to which all of them are near."""
    members = dict.fromkeys(group[0].racks)
    for partition in group[0].racks_of:
        for member_id in members:
            if all(share.near(member_id, partition) and share.room(member_id) > 0 for share in group):
                for share in group:
                    share.give(member_id, (partition,))
                if all(share.room(member_id) == 0 for share in group):
                    del members[member_id]
                break
