"""LeaderHints: what answers of share requests say of leaders that have moved (KIP-951)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import attrs

from kclient.client.metadata import Metadata
from kclient.common.node import Node
from kclient.common.topic_id_partition import TopicIdPartition
from kclient.common.topic_partition import TopicPartition
from kclient.errors import Errors

_MOVED = frozenset({Errors.NOT_LEADER_OR_FOLLOWER, Errors.FENCED_LEADER_EPOCH})
_OUTDATED = _MOVED | {
    Errors.KAFKA_STORAGE_ERROR,
    Errors.REPLICA_NOT_AVAILABLE,
    Errors.LEADER_NOT_AVAILABLE,
    Errors.UNKNOWN_TOPIC_OR_PARTITION,
    Errors.UNKNOWN_TOPIC_ID,
    Errors.INCONSISTENT_TOPIC_ID,
}


class Endpoint(Protocol):
    """The address of a broker, as an answer says."""

    node_id: int
    host: str
    port: int
    rack: str | None


class Leader(Protocol):
    """The leader of a partition, as an answer says; -1 for what it does not know."""

    leader_id: int
    leader_epoch: int


@attrs.define(eq=False)
class LeaderHints:
    """Collects what one answer says. Belongs to the I/O thread."""

    _metadata: Metadata
    _endpoints: Sequence[Endpoint]
    _hints: dict[TopicPartition, tuple[int, int]] = attrs.field(factory=dict, init=False)
    _outdated: bool = attrs.field(default=False, init=False)

    def add(self, partition: TopicIdPartition, code: int, leader: Leader) -> bool:
        """The answer has this code for a partition; returns whether it means that metadata is out of date."""
        if code not in _OUTDATED:
            return False
        self._outdated = True
        if code in _MOVED and leader.leader_id >= 0 and leader.leader_epoch >= 0:
            self._hints[partition.topic_partition] = leader.leader_id, leader.leader_epoch
        return True

    def tell(self) -> None:
        """Let metadata know, and ask for what is missing."""
        if self._hints:
            nodes = [Node(each.node_id, each.host, each.port, each.rack) for each in self._endpoints]
            self._metadata.update_partition_leadership(self._hints, nodes)
        if self._outdated:
            self._metadata.request_update()
