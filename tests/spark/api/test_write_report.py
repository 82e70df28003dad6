"""Reports of a write's tasks, and the one line that they become."""

from __future__ import annotations

import json
import pickle

from pyspark.sql.datasource import WriterCommitMessage

from kclient.common.topic_partition import TopicPartition
from kclient.spark.delivery import Written
from kclient.spark.write_report import WriteReport, report_json

T0 = TopicPartition("t", 0)


def test_reports_of_all_tasks_become_one_line() -> None:
    messages = [WriteReport({T0: Written(2, 0, 1)}), None, WriteReport({T0: Written(3, 2, 4)})]
    assert report_json(messages, batchId=7) == (
        '{"batchId": 7, "records": 5, "topics": {"t": {"0": {"count": 5, "firstOffset": 0, "lastOffset": 4}}}}'
    )


def test_partitions_are_in_the_order_of_their_numbers() -> None:
    parts = {TopicPartition(topic, number): Written(1, 0, 0) for topic in "ba" for number in (10, 2)}
    topics = json.loads(report_json([WriteReport(parts)]))["topics"]
    assert {topic: list(numbers) for topic, numbers in topics.items()} == {"a": ["2", "10"], "b": ["2", "10"]}
    assert list(topics) == ["a", "b"]


def test_a_write_of_nothing_has_a_report_too() -> None:
    # Tasks that failed, or were never run, are None; a message of another's is none of ours.
    for messages in ([], [None, WriterCommitMessage()], [WriteReport({})]):
        assert report_json(messages) == '{"records": 0, "topics": {}}'


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
