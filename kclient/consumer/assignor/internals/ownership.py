"""From what members claim to what they own: of conflicting claims that of the latest generation counts."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from kclient.common.topic_partition import TopicPartition
from kclient.consumer.assignor.internals.user_data import MemberData


class Ownership:
    """The owners of partitions before a rebalance. What does not exist any more belongs to nobody."""

    __slots__ = ("disputed", "earlier", "owned", "owner_of")

    def __init__(self, claims: Mapping[str, MemberData], existing: Container[TopicPartition]) -> None:
        latest = max(claim.generation for claim in claims.values())
        claimants = _latest_claimants(claims.items())
        self.owner_of = {
            tp: members[0] for tp, (_, members) in claimants.items() if len(members) == 1 and tp in existing
        }
        self.disputed = frozenset(tp for tp, (_, members) in claimants.items() if len(members) > 1)
        """Claimed by several members for the same generation: nobody is believed."""
        self.owned: dict[str, list[TopicPartition]] = {
            member_id: [tp for tp in dict.fromkeys(claim.partitions) if self.owner_of.get(tp) == member_id]
            for member_id, claim in claims.items()
        }
        """By member, in the order of its claim."""
        outdated = [(member_id, claim) for member_id, claim in claims.items() if claim.generation < latest]
        self.earlier = {tp: members[0] for tp, (_, members) in _latest_claimants(outdated).items()}
        """The last owners according to members that have missed a generation."""


def _latest_claimants(
    claims: Iterable[tuple[str, MemberData]],
) -> dict[TopicPartition, tuple[int, list[str]]]:
    """The latest generation in which each partition is claimed, and the members that claim it for that."""
    latest: dict[TopicPartition, tuple[int, list[str]]] = {}
    for member_id, claim in claims:
        for tp in dict.fromkeys(claim.partitions):
            found = latest.get(tp)
            if found is None or claim.generation > found[0]:
                latest[tp] = claim.generation, [member_id]
            elif claim.generation == found[0]:
                found[1].append(member_id)
    return latest
