"""PartitionQueue and TopicQueues: the batches of a partition, the partitions of a topic."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from kclient.common.topic_partition import TopicPartition
from kclient.producer.internals.producer_batch import ProducerBatch
from kclient.producer.internals.sticky import StickyPartition
from kclient.record import BatchBuilder

if TYPE_CHECKING:
    from kclient.common.cluster import Cluster
    from kclient.common.node import Node
    from kclient.producer.internals.idempotence.sequences import PartitionSequences


class PartitionQueue:
    """The batches of one partition that wait to be sent, oldest first.

    Batches are added on the right under the accumulator's lock. Only the I/O thread takes them from the left and puts
    back what has to be sent again, so what it sees on the left stays there.
    """

    __slots__ = (
        "_led",
        "appended_bytes",
        "batches",
        "may_grow",
        "muted",
        "open",
        "sequences",
        "tp",
    )

    def __init__(self, tp: TopicPartition) -> None:
        self.tp = tp
        self.batches: deque[ProducerBatch] = deque()
        # The builder to try first. It may be closed: then it takes nothing, which costs one call to find out.
        self.open: BatchBuilder | None = None
        self.muted = False
        self.may_grow = True
        self.appended_bytes = 0
        # What the IdempotenceManager knows of the partition: here, because every batch asks for it several times.
        self.sequences: PartitionSequences | None = None
        self._led: tuple[Cluster | None, Node | None] = (None, None)

    def leader(self, cluster: Cluster) -> Node | None:
        """The partition's leader in `cluster`, looked up once for each picture of it. Thread-safe."""
        known, leader = self._led
        if cluster is not known:
            leader = cluster.leader_for(self.tp)
            self._led = (cluster, leader)
        return leader

    def produced_bytes(self) -> int:
        """Bytes that were ever appended here."""
        return self.appended_bytes + (0 if self.open is None else self.open.uncompressed_size)


class TopicQueues:
    """The queues of one topic. `partition_count` 0 means that the topic is not known now; its queues stay.

    `sticky_queue` is where records without a key go at the moment, None before the first.
    """

    __slots__ = ("partition_count", "queues", "sticky", "sticky_queue", "sticky_start_bytes", "topic")

    def __init__(self, topic: str, sticky: StickyPartition) -> None:
        self.topic = topic
        self.partition_count = 0
        self.queues: dict[int, PartitionQueue] = {}
        self.sticky = sticky
        self.sticky_queue: PartitionQueue | None = None
        self.sticky_start_bytes = 0

    def queue(self, partition: int) -> PartitionQueue:
        """The queue of `partition`, made at first use."""
        queue = self.queues.get(partition)
        if queue is None:
            # setdefault: two threads may both find nothing, and must go on with the same queue.
            queue = self.queues.setdefault(partition, PartitionQueue(TopicPartition(self.topic, partition)))
        return queue
