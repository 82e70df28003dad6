"""Arguments and results of the admin client: topics, offsets of partitions, the cluster. Plain immutable values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum

import attrs

from kclient.common.node import Node
from kclient.common.topic_partition import PartitionInfo
from kclient.common.uuid import Uuid


@attrs.frozen
class NewTopic:
    """A topic to create.

    Leave `num_partitions` or `replication_factor` None for the broker's defaults (KIP-464). `replica_assignments`
    names the brokers of each partition instead of both. Raises TypeError and ValueError for what cannot be.
    """

    name: str
    num_partitions: int | None = None
    replication_factor: int | None = None
    replica_assignments: Mapping[int, Sequence[int]] | None = None
    configs: Mapping[str, str] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        if self.replica_assignments is not None and (self.num_partitions, self.replication_factor) != (
            None,
            None,
        ):
            raise ValueError(
                f"Topic {self.name}: replica_assignments excludes num_partitions and replication_factor"
            )
        for field, largest in (("num_partitions", 2**31 - 1), ("replication_factor", 2**15 - 1)):
            value = getattr(self, field)
            if value is None:
                continue
            if not isinstance(value, int) or isinstance(value, bool):
                raise TypeError(f"Topic {self.name}: {field} must be an int, not {value!r}")
            if not 1 <= value <= largest:
                raise ValueError(f"Topic {self.name}: {field} must be 1 to {largest}, not {value}")
        configs: object = self.configs
        if not isinstance(configs, Mapping):
            raise TypeError(f"Topic {self.name}: configs must map names to values, not be {configs!r}")
        for name, text in configs.items():
            if not isinstance(name, str) or not isinstance(text, str):
                raise TypeError(f"Topic {self.name}: configs must map str to str, not {name!r} to {text!r}")
        self._check_assignments(self.replica_assignments)

    def _check_assignments(self, assignments: object) -> None:
        if assignments is None:
            return
        if not isinstance(assignments, Mapping):
            raise TypeError(f"Topic {self.name}: replica_assignments must be a mapping, not {assignments!r}")
        for partition, brokers in assignments.items():
            numbers = [partition, *brokers] if isinstance(brokers, Sequence) else [brokers]
            if not isinstance(brokers, Sequence) or not all(type(number) is int for number in numbers):
                raise TypeError(
                    f"Topic {self.name}: replica_assignments must map a partition's number to brokers' ids, not "
                    f"{partition!r} to {brokers!r}"
                )


@attrs.frozen
class CreatedTopic:
    """A topic as the broker created it; counts are -1 where the broker is too old to tell (KIP-525)."""

    name: str
    topic_id: Uuid = Uuid.ZERO
    num_partitions: int = -1
    replication_factor: int = -1


@attrs.frozen
class TopicListing:
    """One topic of the cluster."""

    name: str
    topic_id: Uuid = Uuid.ZERO
    is_internal: bool = False


@attrs.frozen
class TopicDescription:
    """One topic with its partitions in order."""

    name: str
    partitions: tuple[PartitionInfo, ...]
    topic_id: Uuid = Uuid.ZERO
    is_internal: bool = False


@attrs.frozen
class ClusterDescription:
    """The brokers of the cluster."""

    cluster_id: str | None
    nodes: tuple[Node, ...]
    controller: Node | None


class OffsetSpec(IntEnum):
    """Offset that `list_offsets` looks up; a plain int >= 0 means the first at or after that time (ms)."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5


@attrs.frozen
class ListedOffset:
    """The offset that `list_offsets` found; offset and timestamp are -1 where no record is that late."""

    offset: int
    timestamp_ms: int = -1
    leader_epoch: int | None = None
