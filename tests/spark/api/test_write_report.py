"""Reports of a write's tasks, and the one line that they become."""

from __future__ import annotations

import json
import pickle

from pyspark.sql.datasource import WriterCommitMessage

from kclient.common.topic_partition import TopicPartition
from kclient.spark.delivery import Tally, Written
from kclient.spark.exactly_once.delivery import Finding, TaskOutcome
from kclient.spark.exactly_once.sink_task import SinkTask
from kclient.spark.task_attempt import TaskAttempt
from kclient.spark.write_report import WriteReport, failure_json, first_of_run, report_json

T0 = TopicPartition("t", 0)


def attempt(partition: int, before: int, run_id: str | None = None) -> TaskAttempt:
    return TaskAttempt(partition, before, 4, None if run_id is None else "q", 7, run_id)


def test_reports_of_all_tasks_become_one_line() -> None:
    messages = [WriteReport({T0: Written(2, 0, 1)}), None, WriteReport({T0: Written(3, 2, 4)})]
    assert report_json(messages, batchId=7) == (
        '{"batchId": 7, "records": 5, "topics": {"t": {"0": {"count": 5, "firstOffset": 0, "lastOffset": 4}}}, '
        '"duplicatesPossible": false, "duplicatesAtMost": 0}'
    )


def test_partitions_are_in_the_order_of_their_numbers() -> None:
    parts = {TopicPartition(topic, number): Written(1, 0, 0) for topic in "ba" for number in (10, 2)}
    topics = json.loads(report_json([WriteReport(parts)]))["topics"]
    assert {topic: list(numbers) for topic, numbers in topics.items()} == {"a": ["2", "10"], "b": ["2", "10"]}
    assert list(topics) == ["a", "b"]


def test_a_write_of_nothing_has_a_report_too() -> None:
    # Tasks that failed, or were never run, are None; a message of another's is none of ours.
    for messages in ([], [None, WriterCommitMessage()], [WriteReport({})]):
        found = json.loads(report_json(messages))
        assert (found["records"], found["topics"], found["duplicatesPossible"]) == (0, {}, False)


def test_an_offset_that_is_not_known_is_minus_one() -> None:
    [report] = [WriteReport({T0: Written(3, -1, -1)})]
    assert json.loads(report_json([report]))["topics"]["t"]["0"] == {
        "count": 3,
        "firstOffset": -1,
        "lastOffset": -1,
    }


def test_what_a_task_tells_does_not_change_afterwards_and_travels() -> None:
    written = {T0: Written(1, 2, 2)}
    report = WriteReport(written)
    written.clear()
    assert report.written == {T0: Written(1, 2, 2)}
    assert pickle.loads(pickle.dumps(report)).written == report.written


def test_tasks_that_took_several_attempts_are_named_with_what_these_may_have_left() -> None:
    messages = [
        WriteReport({T0: Written(40_000, 0, 1)}, attempt=attempt(0, 0)),
        WriteReport({T0: Written(280_000, 2, 4)}, attempt=attempt(1, 2)),
        WriteReport({T0: Written(280_000, 5, 7)}, attempt=attempt(2, 0)),
    ]
    found = json.loads(report_json(messages))
    assert found["records"] == 600_000
    assert found["attempts"] == {"1": 3}
    assert found["duplicatesPossible"] is True
    assert found["duplicatesAtMost"] == 560_000


def test_what_is_written_exactly_once_has_no_duplicates_however_many_attempts_there_were() -> None:
    outcome = TaskOutcome(SinkTask("w", 0, 1), Finding.WRITTEN)
    found = json.loads(report_json([WriteReport({T0: Written(5, 0, 4)}, outcome, attempt(1, 2))]))
    assert found["attempts"] == {"1": 3}
    assert found["duplicatesPossible"] is False
    assert found["duplicatesAtMost"] == 0


class NotedTally(Tally):
    def acknowledged(self) -> dict[TopicPartition, Written]:
        return {T0: Written(3, 10, 12)}


def test_an_attempt_that_failed_says_what_it_has_left() -> None:
    tally = NotedTally(handed=5)
    found = json.loads(failure_json(attempt(3, 1, "run"), tally, ValueError("secret"), exactly_once=False))
    assert found == {
        "failedAttempt": {"partition": 3, "attempt": 1, "stage": 4, "query": "q", "batchId": 7},
        "error": "ValueError",
        "sent": 5,
        "acknowledged": 3,
        "topics": {"t": {"0": {"count": 3, "firstOffset": 10, "lastOffset": 12}}},
        "duplicatesPossible": True,
        "duplicatesAtMost": 5,
    }
    aborted = json.loads(failure_json(None, tally, ValueError(), exactly_once=True))
    assert (aborted["sent"], aborted["acknowledged"], aborted["duplicatesPossible"]) == (5, 0, False)


def test_the_first_micro_batch_of_a_run_is_said_to_be_it() -> None:
    def first(run_id: str | None) -> dict[str, bool]:
        return first_of_run([WriteReport({}, attempt=attempt(0, 0, run_id)), None])

    assert [first("one"), first("one"), first("another"), first(None)] == [
        {"firstOfRun": True},
        {},
        {"firstOfRun": True},
        {},
    ]
