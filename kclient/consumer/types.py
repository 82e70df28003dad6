"""The records that poll() returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Generic, TypeAlias, TypeVar

import attrs

from kclient.common.topic_partition import TopicPartition
from kclient.errors import RecordDeserializationError

K = TypeVar("K")
V = TypeVar("V")

OnDeserializationError: TypeAlias = Callable[[RecordDeserializationError], object]
"""A function for `kclient.on.deserialization.error`, called inside `poll` or an iteration, on the thread of that call.

It is given the error that would be raised. None leaves the record out; a ConsumerRecord of the same topic, partition
and offset takes its place; any other object takes the place of the key or value (`error.which`) alone. What it raises,
the error it was given included, is raised by the call, and it is asked again by the next one. The same record may come
more than once: whatever is read again is decoded again.
"""


@attrs.frozen
class ConsumerRecord(Generic[K, V]):
    """A record read from Kafka. Immutable and always truthy, whatever its value.

    `timestamp_ms` is milliseconds since the epoch, -1 if there is none; `timestamp_type` is 0 for the time the
    producer gave, 1 for the time the broker appended it, -1 for none. `key` and `value` are None or what the
    deserializers made; the sizes are those of their bytes, -1 for None. Header values are bytes or None.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: int
    key: K | None
    value: V | None
    headers: tuple[tuple[str, bytes | None], ...]
    leader_epoch: int | None
    serialized_key_size: int
    serialized_value_size: int

    @property
    def topic_partition(self) -> TopicPartition:
        """The topic and partition that the record comes from."""
        return TopicPartition(self.topic, self.partition)

    @property
    def delivery_count(self) -> int | None:
        """The number of times that a share group has delivered the record, this one included; else None (KIP-932)."""
        return None


class ConsumerRecords(Generic[K, V]):
    """The records of one poll, grouped by partition. Immutable.

    Iterating gives every record, in offset order within each partition. Empty is falsy.
    """

    __slots__ = ("_by_partition", "_count", "_next_offsets")

    def __init__(
        self,
        by_partition: Mapping[TopicPartition, list[ConsumerRecord[K, V]]],
        next_offsets: Mapping[TopicPartition, int] | None = None,
    ) -> None:
        self._by_partition = by_partition
        self._next_offsets = next_offsets or {}
        self._count = sum(map(len, by_partition.values()))

    @property
    def count(self) -> int:
        """The number of records; the same as `len()`."""
        return self._count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[ConsumerRecord[K, V]]:
        # Not a generator: resuming one for each record costs as much as a third of making it.
        return chain.from_iterable(self._by_partition.values())

    def partitions(self) -> frozenset[TopicPartition]:
        """The partitions that have records here."""
        return frozenset(self._by_partition)

    def by_partition(self) -> dict[TopicPartition, list[ConsumerRecord[K, V]]]:
        """The records of each partition, in offset order."""
        return dict(self._by_partition)

    def records(self, where: TopicPartition | str) -> list[ConsumerRecord[K, V]]:
        """The records of one partition, or of all partitions of a topic."""
        if isinstance(where, TopicPartition):
            return list(self._by_partition.get(where, ()))
        return [
            record for tp, records in self._by_partition.items() if tp.topic == where for record in records
        ]

    def next_offsets(self) -> dict[TopicPartition, int]:
        """The next offset of each partition after these records: commit it once they are processed (KIP-1094)."""
        return dict(self._next_offsets)

    def __repr__(self) -> str:
        return f"ConsumerRecords({self._count} records of {len(self._by_partition)} partitions)"
