"""Sends the record batches of one task, on an executor, and says where the records went."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import attrs
from pyspark.sql.datasource import WriterCommitMessage

from kclient.common.topic_partition import TopicPartition
from kclient.spark import clients
from kclient.spark.clients import BytesProducer
from kclient.spark.sink_columns import SinkColumns

if TYPE_CHECKING:
    from kclient.producer import BulkFuture, RecordRange


@attrs.frozen
class Written:
    """How many records went to one partition, and the first and last offset they got (-1: not known)."""

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


class WriteReport(WriterCommitMessage):
    """What one task wrote. Travels from the executor to the driver."""

    def __init__(self, written: Mapping[TopicPartition, Written]) -> None:
        self.written = dict(written)


def deliver(settings: Mapping[str, str], columns: SinkColumns, batches: Iterable[Any]) -> WriteReport:
    """Write all batches and wait until every record is acknowledged.

    At least once: idempotent within this call, but a task that Spark runs again writes all its records again. Raises
    the error of the first records that failed, which names topic and partition.
    """
    totals: dict[TopicPartition, Written] = {}
    try:
        for found in _outcomes(settings, columns, batches):
            last = found.base_offset + found.count - 1 if found.base_offset >= 0 else -1
            mine = Written(found.count, found.base_offset, last)
            tp = found.topic_partition
            totals[tp] = totals[tp].also(mine) if tp in totals else mine
    except BaseException:
        # What it still holds belongs to a write that has failed: the next one must not wait for it.
        clients.drop_producer(settings)
        raise
    return WriteReport(totals)


def _outcomes(
    settings: Mapping[str, str], columns: SinkColumns, batches: Iterable[Any]
) -> Iterator[RecordRange]:
    producer: BytesProducer | None = None
    pending: deque[BulkFuture] = deque()
    for batch in batches:
        if not batch.num_rows:
            continue
        if producer is None:
            # Not before there is a record: Spark also runs tasks that have none.
            producer = clients.shared_producer(settings)
        pending.append(producer.send_arrow(columns.select(batch), topic=columns.topic))
        while pending and pending[0].done():
            yield from pending.popleft().result()
    if producer is not None:
        producer.flush()
        for future in pending:
            yield from future.result()


def report_json(messages: Iterable[WriterCommitMessage | None], **more: object) -> str:
    """All tasks' reports as one line of JSON: `{"records": 3, "topics": {"t": {"0": {"count": 3, ...}}}}`."""
    totals: dict[TopicPartition, Written] = {}
    for message in messages:
        if isinstance(message, WriteReport):
            for tp, written in message.written.items():
                totals[tp] = totals[tp].also(written) if tp in totals else written
    topics: dict[str, dict[str, dict[str, int]]] = {}
    for tp, written in sorted(totals.items()):
        topics.setdefault(tp.topic, {})[str(tp.partition)] = {
            "count": written.count,
            "firstOffset": written.first_offset,
            "lastOffset": written.last_offset,
        }
    return json.dumps({**more, "records": sum(each.count for each in totals.values()), "topics": topics})
