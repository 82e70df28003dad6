"""Reports to the driver of what the tasks of a write have written, and what became of attempts that failed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import WriterCommitMessage

from kclient.common.topic_partition import TopicPartition
from kclient.spark.delivery import Tally, Written, totals
from kclient.spark.exactly_once.delivery import Finding, TaskOutcome
from kclient.spark.task_attempt import TaskAttempt

if TYPE_CHECKING:
    from kclient.spark.task_metrics import Counter

# Runs of queries whose first micro-batch was reported here. Few, as a process serves few queries.
_reported: set[str] = set()


class WriteReport(WriterCommitMessage):
    """The report of one task on what it wrote. Travels from the executor to the driver."""

    def __init__(
        self,
        written: Mapping[TopicPartition, Written],
        outcome: TaskOutcome | None = None,
        attempt: TaskAttempt | None = None,
    ) -> None:
        self.written = dict(written)
        self.outcome = outcome
        """None: the task wrote at least once."""
        self.attempt = attempt


def count_written(counter: Counter, report: WriteReport, task_ms: int) -> None:
    """Tell the numbers of one task to the driver. Its time counts for every partition that it wrote to."""
    from kclient.spark.task_metrics import Counted, TaskNumbers

    query_id = None if report.attempt is None else report.attempt.query_id
    counter.add(
        {
            Counted(query_id, False, tp): TaskNumbers(1, each.count, each.count, task_ms=task_ms)
            for tp, each in report.written.items()
        }
    )


def outcomes(messages: Iterable[WriterCommitMessage | None]) -> list[TaskOutcome]:
    """Return the outcomes of the tasks that wrote exactly once."""
    return [report.outcome for report in _reports(messages) if report.outcome is not None]


def report_json(messages: Iterable[WriterCommitMessage | None], **more: object) -> str:
    """All tasks' reports as one line of JSON: `{"records": 3, "topics": {"t": {"0": {"count": 3, ...}}}, ...}`.

    With `"attempts": {"2": 3}` for sink partitions that took more than one, and what these may have left:
    `duplicatesAtMost`, if each attempt that failed had the rows of the one that did not; none where rows are written
    exactly once. With `"alreadyWritten": [2]` for sink partitions that an earlier attempt had written.
    """
    reports = _reports(messages)
    repeated = {each.attempt.partition: each for each in reports if each.attempt and each.attempt.attempt}
    if repeated:
        more["attempts"] = {
            str(number): each.attempt.attempt + 1 for number, each in sorted(repeated.items()) if each.attempt
        }
    already = sorted(
        outcome.task.partition for outcome in outcomes(reports) if outcome.finding is Finding.ALREADY_WRITTEN
    )
    if already:
        more["alreadyWritten"] = already
    found = totals(part for report in reports for part in report.written.items())
    duplicates = sum(map(_duplicates_at_most, repeated.values()))
    return json.dumps(
        {
            **more,
            "records": _count(found),
            "topics": _topics_json(found),
            "duplicatesPossible": duplicates > 0,
            "duplicatesAtMost": duplicates,
        }
    )


def failure_json(
    attempt: TaskAttempt | None, tally: Tally, error: BaseException, *, exactly_once: bool
) -> str:
    """One line of JSON on an attempt at a task that failed, and what it has left.

    `acknowledged` records are there, up to `sent` may be. What a transaction was to write is not there.
    """
    written = {} if exactly_once else tally.acknowledged()
    at_most = 0 if exactly_once else tally.handed
    return json.dumps(
        {
            "failedAttempt": {} if attempt is None else attempt.as_json(),
            "error": type(error).__name__,
            "sent": tally.handed,
            "acknowledged": _count(written),
            "topics": _topics_json(written),
            "duplicatesPossible": at_most > 0,
            "duplicatesAtMost": at_most,
        }
    )


def first_of_run(messages: Iterable[WriterCommitMessage | None]) -> dict[str, bool]:
    """Return `{"firstOfRun": True}` for the first micro-batch of a run of a query, which may be a repetition."""
    runs = {each.attempt.run_id for each in _reports(messages) if each.attempt and each.attempt.run_id}
    new = runs - _reported
    _reported.update(new)
    return {"firstOfRun": True} if new else {}


def _reports(messages: Iterable[WriterCommitMessage | None]) -> list[WriteReport]:
    return [message for message in messages if isinstance(message, WriteReport)]


def _duplicates_at_most(report: WriteReport) -> int:
    if report.outcome is not None or report.attempt is None:
        return 0
    return report.attempt.attempt * _count(report.written)


def _count(written: Mapping[TopicPartition, Written]) -> int:
    return sum(each.count for each in written.values())


def _topics_json(found: Mapping[TopicPartition, Written]) -> dict[str, dict[str, dict[str, int]]]:
    topics: dict[str, dict[str, dict[str, int]]] = {}
    for tp, written in sorted(found.items()):
        topics.setdefault(tp.topic, {})[str(tp.partition)] = {
            "count": written.count,
            "firstOffset": written.first_offset,
            "lastOffset": written.last_offset,
        }
    return topics
