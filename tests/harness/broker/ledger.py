"""All that a broker has acknowledged and shown, held against what it shows after a crash."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from itertools import pairwise

from kclient.common.topic_partition import TopicPartition
from kclient.consumer import ConsumerRecord, KafkaConsumer
from kclient.producer import RecordMetadata

_LOOK_BACK = 500


class Ledger:
    """The records of a topic, as `acked` was told of them and `look` has seen them. Thread-safe.

    Values are bytes of a number, which rises in each partition. With `once` each comes once and in order, else at
    least once. What is below the log's start may be gone, and with `compacted` what has a later record of its key.
    Nothing may change its place, come back, or be there under an offset that something else was read at.
    """

    def __init__(self, topic: str, *, once: bool = True, compacted: bool = False) -> None:
        self.topic = topic
        self.count = 0
        """Number of records that were acknowledged."""
        self.looked_at = 0
        """Number of records that were seen, in all looks together."""
        self._once = once
        self._compacted = compacted
        self._lock = threading.Lock()
        self._acked: dict[int, dict[int, tuple[bytes | None, bytes]]] = {}
        self._seen: dict[int, dict[int, tuple[bytes | None, bytes | None]]] = {}
        self._bounds: dict[int, tuple[int, int]] = {}
        self.problems: list[str] = []

    def acked(self, metadata: RecordMetadata, key: bytes | None, value: bytes) -> None:
        """A record was acknowledged."""
        with self._lock:
            acked = self._acked.setdefault(metadata.partition, {})
            before = acked.setdefault(metadata.offset, (key, value))
            if before != (key, value):
                self._wrong(
                    metadata.partition, f"{value!r} was acknowledged at {metadata.offset}, as {before} was"
                )
            self.count += 1

    def look(self, consumer: KafkaConsumer[bytes, bytes], *, all_of_it: bool) -> None:
        """Read the topic, or with `all_of_it` not set the newest part, and compare."""
        with self._lock:
            acked = {partition: dict(records) for partition, records in self._acked.items()}
        partitions = [TopicPartition(self.topic, partition) for partition in sorted(acked)]
        if not partitions:
            return
        consumer.assign(partitions)
        starts, ends = consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)
        begins = {}
        for tp in partitions:
            _, end_before = self._bounds.get(tp.partition, (0, 0))
            begins[tp] = starts[tp] if all_of_it else max(starts[tp], end_before - _LOOK_BACK)
            consumer.seek(tp, begins[tp])
        read: dict[int, list[ConsumerRecord[bytes, bytes]]] = {tp.partition: [] for tp in partitions}
        while any(consumer.position(tp) < ends[tp] for tp in partitions):
            for record in consumer.poll(200):
                read[record.partition].append(record)
        # Retention may have been quicker than the reading.
        starts = consumer.beginning_offsets(partitions)
        for tp in partitions:
            number = tp.partition
            self._check_bounds(number, starts[tp], max(ends[tp], starts[tp]), acked[number])
            self._check(number, read[number], max(begins[tp], starts[tp]), acked[number])

    def _check_bounds(self, partition: int, start: int, end: int, acked: Iterable[int]) -> None:
        start_before, end_before = self._bounds.get(partition, (0, 0))
        if start < start_before or end < end_before or start > end:
            self._wrong(
                partition, f"was {start_before} to {end_before} and is {start} to {end}", "a log went back"
            )
        if max(acked, default=-1) >= end:
            self._wrong(partition, f"ends at {end}, and {max(acked)} was acknowledged")
        self._bounds[partition] = start, end

    def _check(
        self,
        partition: int,
        records: list[ConsumerRecord[bytes, bytes]],
        begin: int,
        acked: dict[int, tuple[bytes | None, bytes]],
    ) -> None:
        found = {record.offset: (record.key, record.value) for record in records}
        self.looked_at += len(records)
        if len(found) < len(records):
            self._wrong(partition, "an offset came twice in one reading")
        last = {key: offset for offset, (key, _) in sorted(found.items())}
        for offset, record in acked.items():
            if offset < begin or found.get(offset) == record:
                continue
            if not (self._compacted and last.get(record[0], -1) > offset and offset not in found):
                self._wrong(partition, f"{record} was acknowledged at {offset}, where {found.get(offset)} is")
        seen = self._seen.setdefault(partition, {})
        for offset, record in found.items():
            if seen.setdefault(offset, record) != record:
                self._wrong(partition, f"{seen[offset]} was read at {offset}, where {record} is now")
        if self._once:
            numbers = [int(value or b"-1") for _, (_, value) in sorted(found.items())]
            if any(a >= b for a, b in pairwise(numbers)):
                self._wrong(partition, "records are doubled or out of order")

    def _wrong(self, partition: int, what: str, kind: str = "") -> None:
        self.problems.append(f"{kind or 'a record'}: {self.topic}-{partition}: {what}")
