"""Sends the record batches of one task, on an executor, and says where the records went."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from kclient.common.topic_partition import TopicPartition
from kclient.spark import clients
from kclient.spark.clients import BytesProducer
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


def deliver(
    settings: Mapping[str, str], columns: SinkColumns, batches: Iterable[Any]
) -> dict[TopicPartition, Written]:
    """Write all batches, wait until every record is acknowledged, and say where they are.

    At least once: idempotent within this call, but a task that Spark runs again writes all its records again. Raises
    the error of the first records that failed, which names topic and partition.
    """
    try:
        return sent(lambda: clients.shared_producer(settings), columns, batches)
    except BaseException:
        # What it still holds belongs to a write that has failed: the next one must not wait for it.
        clients.drop_producer(settings)
        raise


def sent(
    producer_of: Callable[[], BytesProducer], columns: SinkColumns, batches: Iterable[Any]
) -> dict[TopicPartition, Written]:
    """Send all batches, wait until every record is acknowledged, and say where they are.

    The producer is asked for when there is a record: Spark also runs tasks that have none. Raises the error of the
    first records that failed.
    """
    return totals(map(_written, _outcomes(producer_of, columns, batches)))


def _written(found: RecordRange) -> tuple[TopicPartition, Written]:
    last = found.base_offset + found.count - 1 if found.base_offset >= 0 else -1
    return found.topic_partition, Written(found.count, found.base_offset, last)


def _outcomes(
    producer_of: Callable[[], BytesProducer], columns: SinkColumns, batches: Iterable[Any]
) -> Iterator[RecordRange]:
    producer: BytesProducer | None = None
    pending: deque[BulkFuture] = deque()
    for batch in batches:
        if not batch.num_rows:
            continue
        if producer is None:
            producer = producer_of()
        pending.append(producer.send_arrow(columns.select(batch), topic=columns.topic))
        while pending and pending[0].done():
            yield from pending.popleft().result()
    if producer is not None:
        producer.flush()
        for future in pending:
            yield from future.result()
