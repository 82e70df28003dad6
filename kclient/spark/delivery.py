"""Sends the record batches of one task, on an executor, and says where the records went."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from kclient.common.topic_partition import TopicPartition
from kclient.spark import clients
from kclient.spark.clients import BytesProducer
from kclient.spark.given_partitions import GivenPartitions
from kclient.spark.output import SinkColumns

if TYPE_CHECKING:
    from kclient.producer import BulkFuture, RecordRange


@attrs.frozen
class Written:
    """Number of records written to one partition, and the first and last offset they got (-1: not known)."""

    count: int
    first_offset: int
    last_offset: int

    def also(self, other: Written) -> Written:
        """Both together."""
        known = [each for each in (self, other) if each.first_offset >= 0]
        return Written(
            self.count + other.count,
            min((each.first_offset for each in known), default=-1),
            max((each.last_offset for each in known), default=-1),
        )


def totals(parts: Iterable[tuple[TopicPartition, Written]]) -> dict[TopicPartition, Written]:
    """Return everything written to each partition, added up."""
    found: dict[TopicPartition, Written] = {}
    for tp, written in parts:
        found[tp] = found[tp].also(written) if tp in found else written
    return found


@attrs.define(eq=False)
class Tally:
    """The records of one task, counted while they are sent: what is known of them if it fails."""

    handed: int = 0
    """Records that the producer was given."""
    _written: dict[TopicPartition, Written] = attrs.field(factory=dict)
    _pending: deque[BulkFuture] = attrs.field(factory=deque)

    def add(self, future: BulkFuture) -> None:
        """The producer was given a batch. Raises the error of one before it that has failed."""
        self.handed += future.count
        self._pending.append(future)
        while self._pending and self._pending[0].done():
            self._settle()

    def settle(self) -> None:
        """Wait for all batches. Raises the error of the first records that failed."""
        while self._pending:
            self._settle()

    def acknowledged(self) -> dict[TopicPartition, Written]:
        """Return what is written to each partition, as far as it is known by now. Never waits and never raises."""
        known = (found for future in self._pending for found in future.ranges() if found.error is None)
        return totals([*self._written.items(), *map(_written, known)])

    def _settle(self) -> None:
        self._written = totals([*self._written.items(), *map(_written, self._pending[0].result())])
        self._pending.popleft()


def deliver(
    settings: Mapping[str, str], columns: SinkColumns, batches: Iterable[Any], tally: Tally | None = None
) -> dict[TopicPartition, Written]:
    """Write all batches, wait until every record is acknowledged, and say where they are.

    At least once: idempotent within this call, but a task that Spark runs again writes all its records again. Raises
    the error of the first records that failed, which names topic and partition; `tally` then has what is written.
    """
    try:
        given = GivenPartitions(settings, columns)
        return sent(lambda: clients.shared_producer(settings), columns, given, batches, tally)
    except BaseException:
        # What it still holds belongs to a write that has failed: the next one must not wait for it.
        clients.drop_producer(settings)
        raise


def sent(
    producer_of: Callable[[], BytesProducer],
    columns: SinkColumns,
    given: GivenPartitions,
    batches: Iterable[Any],
    tally: Tally | None = None,
) -> dict[TopicPartition, Written]:
    """Send all batches, wait until every record is acknowledged, and say where they are.

    The producer is asked for when there is a record: Spark also runs tasks that have none. Raises the error of the
    first records that failed, and UnknownTopicOrPartitionError for a row whose partition does not exist.
    """
    tally = tally or Tally()
    producer: BytesProducer | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        if producer is None:
            producer = producer_of()
        given.check(producer, batch)
        tally.add(producer.send_arrow(columns.select(batch), topic=columns.topic))
    if producer is not None:
        producer.flush()
        tally.settle()
    return tally.acknowledged()


def _written(found: RecordRange) -> tuple[TopicPartition, Written]:
    last = found.base_offset + found.count - 1 if found.base_offset >= 0 else -1
    return found.topic_partition, Written(found.count, found.base_offset, last)
