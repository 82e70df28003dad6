"""The choice of partitions for records without a key: batch by batch, more often at brokers that keep up (KIP-794)."""

from __future__ import annotations

import itertools
import random
from bisect import bisect_right
from collections.abc import Callable, Sequence

import attrs

from kclient.common.cluster import Cluster
from kclient.common.node import Node


@attrs.define(eq=False, repr=False)
class NodeAvailability:
    """Since when each broker has had batches ready without taking any. Written by the I/O thread, read by any."""

    _timeout_ms: int
    _stalled_since_ms: dict[int, int] = attrs.field(factory=dict, init=False)

    def stalled(self, node_id: int, now_ms: int) -> None:
        """There are batches for the broker, but nothing can be sent to it."""
        self._stalled_since_ms.setdefault(node_id, now_ms)

    def progressed(self, node_id: int) -> None:
        """The broker was sent something."""
        self._stalled_since_ms.pop(node_id, None)

    def available(self, node: Node, now_ms: int) -> bool:
        """False once the broker has stalled for partitioner.availability.timeout.ms (never, if that is 0)."""
        if not self._timeout_ms:
            return True
        since_ms = self._stalled_since_ms.get(node.id)
        return since_ms is None or now_ms - since_ms < self._timeout_ms


@attrs.define(eq=False, repr=False)
class StickyPartition:
    """Chooses the partition that records without a key of one topic stay with for a while.

    Called under the accumulator's lock.
    """

    _topic: str
    _adaptive: bool
    _availability: NodeAvailability
    _random: Callable[[int], int] = attrs.field(default=random.randrange, alias="below")

    def next_partition(self, cluster: Cluster, backlog: Callable[[int], int], now_ms: int) -> int:
        """The partition to go on with; `backlog(partition)` is how many batches wait there.

        The topic must have partitions.
        """
        infos = cluster.available_partitions_for_topic(self._topic)
        if not infos:
            infos = cluster.partitions_for_topic(self._topic)
            return infos[self._random(len(infos))].partition
        if self._adaptive and len(infos) > 1:
            usable = [i for i in infos if i.leader is None or self._availability.available(i.leader, now_ms)]
            if usable:
                infos = tuple(usable)
            backlogs = [backlog(info.partition) for info in infos]
            if max(backlogs) > min(backlogs):
                return infos[weighted_choice(backlogs, self._random)].partition
        return infos[self._random(len(infos))].partition


def weighted_choice(backlogs: Sequence[int], below: Callable[[int], int] = random.randrange) -> int:
    """An index, the likelier the shorter its queue: queues of 0, 3 and 1 are taken as 4 : 1 : 3."""
    top = max(backlogs) + 1
    frequencies = list(itertools.accumulate(top - backlog for backlog in backlogs))
    return bisect_right(frequencies, below(frequencies[-1]))
