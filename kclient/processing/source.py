"""Source: the consumer of a run, whose place in the group outlives slow handlers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from kclient.common.topic_partition import TopicPartition
from kclient.consumer import ConsumerRecord, KafkaConsumer
from kclient.errors import RecordDeserializationError
from kclient.processing.dead_letters import Reason

LOOK_MS = 200
"""The time between two looks at the group, and at the wish to stop, while there is nothing else to do."""


@attrs.frozen
class Batch:
    """The records of a poll."""

    records: Mapping[TopicPartition, list[ConsumerRecord[Any, Any]]]
    next_offsets: Mapping[TopicPartition, int]
    """The offsets to go on from after them."""
    unreadable: Reason | None = None
    """The error of the deserializer, if the batch is the one record that it was raised for."""

    @property
    def starts(self) -> dict[TopicPartition, int]:
        """Return the offset of the first record of each partition."""
        return {tp: records[0].offset for tp, records in self.records.items()}

    def __bool__(self) -> bool:
        return bool(self.records)


class Source:
    """Reads records, and takes part in the group while they are worked on. For the thread that polls."""

    def __init__(self, consumer: KafkaConsumer[Any, Any], *, pass_unreadable: bool) -> None:
        self.consumer = consumer
        self._pass_unreadable = pass_unreadable
        self._paused: set[TopicPartition] = set()

    def poll(self, timeout_ms: int) -> Batch:
        """Return what there is to read; what no deserializer can read alone, in a batch of its own."""
        consumer = self.consumer
        self.resume()
        try:
            records = consumer.poll(timeout_ms)
        except RecordDeserializationError as error:
            if error.topic_partition is None or not self._pass_unreadable:
                raise
            consumer.seek(error.topic_partition, error.offset + 1)
            return _unreadable(error, error.topic_partition)
        return Batch(records.by_partition(), records.next_offsets())

    def resume(self) -> None:
        """Read again what `keep_alive` has paused."""
        if self._paused:
            self.consumer.resume(self._paused & self.consumer.assignment())
            self._paused.clear()

    def keep_alive(self) -> None:
        """Take part in the group, and read nothing."""
        consumer = self.consumer
        pausing = consumer.assignment() - consumer.paused()
        consumer.pause(pausing)
        self._paused |= pausing
        # Partitions that this poll itself was given are not paused.
        try:
            came_too_early = consumer.poll(0).by_partition()
        except RecordDeserializationError:  # nor does it move their positions
            return
        for tp, records in came_too_early.items():
            consumer.seek(tp, records[0].offset)

    @property
    def generation(self) -> int:
        """The generation of the group as its member knows it; -1 if it is none."""
        return self.consumer.group_metadata().generation_id

    def put_back(self, positions: Mapping[TopicPartition, int], *, generation: int | None = None) -> None:
        """Read on from `positions`, where the partitions are still assigned, if they are of this `generation`.

        If the group has moved on since, others may have been further: then from where the group stands, and from the
        positions only where nothing is committed.
        """
        consumer = self.consumer
        left = {tp: offset for tp, offset in positions.items() if tp in consumer.assignment()}
        if not left:
            return
        if generation is None or (generation != self.generation):
            for tp, committed in consumer.committed(left).items():
                consumer.seek(tp, left[tp] if committed is None else committed)
            return
        for tp, offset in left.items():
            consumer.seek(tp, offset)


def _unreadable(error: RecordDeserializationError, tp: TopicPartition) -> Batch:
    record: ConsumerRecord[Any, Any] = ConsumerRecord(
        topic=tp.topic,
        partition=tp.partition,
        offset=error.offset,
        timestamp_ms=error.timestamp_ms,
        timestamp_type=error.timestamp_type,
        key=error.key,
        value=error.value,
        headers=error.headers,
        leader_epoch=None,
        serialized_key_size=-1 if error.key is None else len(error.key),
        serialized_value_size=-1 if error.value is None else len(error.value),
    )
    return Batch({tp: [record]}, {tp: error.offset + 1}, Reason(error, 0))
