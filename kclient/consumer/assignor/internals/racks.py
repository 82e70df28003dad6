"""Racks of members and replicas, where a division can be nearer to the members or less near (KIP-881)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kclient.common.topic_partition import PartitionInfo, TopicPartition
from kclient.consumer.assignor.base import Subscription


class Racks:
    """The racks of members and partitions; there are none (`aware` is False) where they make no difference.

    They make one if members and replicas share racks, and not every partition has a replica in every rack.
    """

    __slots__ = ("aware", "of_member", "of_partition")

    def __init__(self, infos: Iterable[PartitionInfo], subscriptions: Mapping[str, Subscription]) -> None:
        of_member = {member: given.rack_id for member, given in subscriptions.items() if given.rack_id}
        of_partition: dict[TopicPartition, frozenset[str]] = {}
        if of_member:
            of_partition = {
                TopicPartition(info.topic, info.partition): frozenset(
                    node.rack for node in info.replicas if node.rack
                )
                for info in infos
            }
        everywhere = frozenset[str]().union(*of_partition.values())
        self.aware = not everywhere.isdisjoint(of_member.values()) and any(
            racks != everywhere for racks in of_partition.values()
        )
        self.of_member: dict[str, str] = of_member if self.aware else {}
        self.of_partition = of_partition if self.aware else {}

    def mismatch(self, member_id: str, tp: TopicPartition) -> bool:
        """Return True if the partition has no replica in the member's rack; a member without a rack is near to all."""
        rack = self.of_member.get(member_id)
        return rack is not None and rack not in self.of_partition[tp]

    def fewest_members_first(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Sort partitions by how many members are in the racks of their replicas."""
        if not self.aware:
            return partitions
        in_rack: dict[str, int] = {}
        for rack in self.of_member.values():
            in_rack[rack] = in_rack.get(rack, 0) + 1
        return sorted(partitions, key=lambda tp: sum(in_rack.get(rack, 0) for rack in self.of_partition[tp]))
