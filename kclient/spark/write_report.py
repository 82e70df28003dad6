"""Reports to the driver of what the tasks of a write have written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from pyspark.sql.datasource import WriterCommitMessage

from kclient.common.topic_partition import TopicPartition
from kclient.spark.delivery import Written, totals
from kclient.spark.exactly_once.delivery import Finding, TaskOutcome


class WriteReport(WriterCommitMessage):
    """The report of one task on what it wrote. Travels from the executor to the driver."""

    def __init__(self, written: Mapping[TopicPartition, Written], outcome: TaskOutcome | None = None) -> None:
        self.written = dict(written)
        self.outcome = outcome
        """None: the task wrote at least once."""


def outcomes(messages: Iterable[WriterCommitMessage | None]) -> list[TaskOutcome]:
    """Return the outcomes of the tasks that wrote exactly once."""
    reports = (message for message in messages if isinstance(message, WriteReport))
    return [report.outcome for report in reports if report.outcome is not None]


def report_json(messages: Iterable[WriterCommitMessage | None], **more: object) -> str:
    """All tasks' reports as one line of JSON: `{"records": 3, "topics": {"t": {"0": {"count": 3, ...}}}}`.

    With `"alreadyWritten": [2]` for sink partitions that an earlier attempt had written.
    """
    messages = list(messages)
    already = sorted(
        outcome.task.partition for outcome in outcomes(messages) if outcome.finding is Finding.ALREADY_WRITTEN
    )
    if already:
        more["alreadyWritten"] = already
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
