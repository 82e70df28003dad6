"""PartitionQueue and TopicQueues: the batches of a partition, the partitions of a topic."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import attrs

from kclient._accel import Column, Future, OpenBatches
from kclient.common.topic_partition import TopicPartition
from kclient.producer.internals.producer_batch import ProducerBatch
from kclient.producer.internals.sticky import StickyPartition
from kclient.record import BatchBuilder, BatchResult
from kclient.serialization import AdaptedSerializer

if TYPE_CHECKING:
    from kclient.common.cluster import Cluster
    from kclient.common.node import Node
    from kclient.producer.internals.idempotence.sequences import PartitionSequences


Contents: TypeAlias = list[bytes | None] | tuple[bytes | None, ...]
Added: TypeAlias = tuple[BatchResult, int, int]
"""The result of a batch, the index there of the first record that was added, and how many were."""
TryAppend: TypeAlias = Callable[
    [Any, Any, Any, Any, Any, Any], Future | tuple[bytes | None, bytes | None] | None
]
"""`OpenBatches.try_append`: key, value, headers, timestamp, partition, callback."""


class ColumnsToAppend(Protocol):
    """Records in columns, as `BatchBuilder.append_columns` takes them."""

    @property
    def timestamps(self) -> memoryview | None: ...
    @property
    def keys(self) -> Column | None: ...
    @property
    def values(self) -> Column | None: ...
    def row(self, number: int) -> tuple[int | None, bytes | None, bytes | None]:
        """Timestamp, key and value of one record."""


@attrs.define(eq=False, repr=False)
class PartitionQueue:
    """The batches of one partition that wait to be sent, oldest first.

    Batches are added on the right under the accumulator's lock. Only the I/O thread takes them from the left and puts
    back what has to be sent again, so what it sees on the left stays there.
    """

    tp: TopicPartition
    batches: deque[ProducerBatch] = attrs.field(factory=deque, init=False)
    # The builder to try first. It may be closed: then it takes nothing, which costs one call to find out.
    open: BatchBuilder | None = attrs.field(default=None, init=False)
    muted: bool = attrs.field(default=False, init=False)
    may_grow: bool = attrs.field(default=True, init=False)
    appended_bytes: int = attrs.field(default=0, init=False)
    # What the IdempotenceManager knows of the partition: here, because every batch asks for it several times.
    sequences: PartitionSequences | None = attrs.field(default=None, init=False)
    _led: tuple[Cluster | None, Node | None] = attrs.field(default=(None, None), init=False)

    def leader(self, cluster: Cluster) -> Node | None:
        """The partition's leader in `cluster`, looked up once for each picture of it. Thread-safe."""
        known, leader = self._led
        if cluster is not known:
            leader = cluster.leader_for(self.tp)
            self._led = (cluster, leader)
        return leader

    def try_append(
        self,
        timestamp_ms: int | None,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes | None]],
        callback: Any,
    ) -> Future | None:
        """Add a record to the open batch; None if there is none, or no room in it. Thread-safe."""
        builder = self.open
        return None if builder is None else builder.append(timestamp_ms, key, value, headers, callback)

    def try_append_many(self, keys: Contents | None, values: Contents, start: int, stop: int) -> Added | None:
        """Add as many of the records `start` to `stop` as fit into the open batch; None for none."""
        builder = self.open
        if builder is None:
            return None
        first, taken = builder.append_many(None, keys, values, start, stop)
        return (builder.result, first, taken) if taken else None

    def try_append_columns(self, columns: ColumnsToAppend, start: int, stop: int) -> Added | None:
        """Do as `try_append_many`, for records in columns."""
        builder = self.open
        if builder is None:
            return None
        first, taken = builder.append_columns(columns.timestamps, columns.keys, columns.values, start, stop)
        return (builder.result, first, taken) if taken else None

    def retire(self, builder: BatchBuilder) -> None:
        """Append nothing to `builder` any more. The lock is held."""
        if self.open is builder:
            self.appended_bytes += builder.uncompressed_size
            self.open = None

    def produced_bytes(self) -> int:
        """Bytes that were ever appended here."""
        return self.appended_bytes + (0 if self.open is None else self.open.uncompressed_size)


class TopicQueues(OpenBatches):
    """The queues of one topic. `partition_count` 0 means that the topic is not known now; its queues stay.

    `sticky_queue` is where records without a key go at the moment, None before the first. `try_append` is the way of
    nearly every record: there is room in the open batch of its partition.
    """

    __slots__ = ("sticky", "sticky_start_bytes")

    def __init__(
        self,
        topic: str,
        ignores_keys: bool,
        key_serializer: AdaptedSerializer,
        value_serializer: AdaptedSerializer,
        sticky: StickyPartition,
    ) -> None:
        super().__init__(topic, ignores_keys, key_serializer, value_serializer)
        self.sticky = sticky
        self.sticky_start_bytes = 0

    def queue(self, partition: int) -> PartitionQueue:
        """The queue of `partition`, made at first use."""
        queue: PartitionQueue | None = self.queues.get(partition)
        if queue is None:
            # setdefault: two threads may both find nothing, and must go on with the same queue.
            queue = self.queues.setdefault(partition, PartitionQueue(TopicPartition(self.topic, partition)))
        return queue
