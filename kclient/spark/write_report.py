"""Reports to the driver of what the tasks of a write have written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from pyspark.sql.datasource import WriterCommitMessage

from kclient.common.topic_partition import TopicPartition
from kclient.spark.delivery import Written, totals


class WriteReport(WriterCommitMessage):
    """The report of one task on what it wrote. Travels from the executor to the driver."""

    def __init__(self, written: Mapping[TopicPartition, Written]) -> None:
        self.written = dict(written)


def report_json(messages: Iterable[WriterCommitMessage | None], **more: object) -> str:
    """All tasks' reports as one line of JSON: `{"records": 3, "topics": {"t": {"0": {"count": 3, ...}}}}`."""
    found = totals(
        part for message in messages if isinstance(message, WriteReport) for part in message.written.items()
    )
    topics: dict[str, dict[str, dict[str, int]]] = {}
    for tp, written in sorted(found.items()):
        topics.setdefault(tp.topic, {})[str(tp.partition)] = {
            "count": written.count,
            "firstOffset": written.first_offset,
            "lastOffset": written.last_offset,
        }
    return json.dumps({**more, "records": sum(each.count for each in found.values()), "topics": topics})
