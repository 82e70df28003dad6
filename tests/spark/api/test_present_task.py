"""The task that Spark says runs here: of a stream by its query, of a batch write by its id."""

from __future__ import annotations

import attrs
import pytest
from pyspark import TaskContext

from kclient.errors import IllegalStateError
from kclient.spark.exactly_once.present_task import present_task
from kclient.spark.exactly_once.sink_task import SinkTask
from kclient.spark.sink_options import ExactlyOnceOptions
from kclient.spark.task_attempt import TaskAttempt, present_attempt

STREAM = ExactlyOnceOptions(
    marker_topic="t",
    transaction_timeout_ms=60_000,
    write_id=None,
    repeatable=True,
    epoch=0,
    accept_missing_markers=False,
)
BATCH = attrs.evolve(STREAM, write_id="w", epoch=4)
OF_QUERY = {"sql.streaming.queryId": "q", "streaming.sql.batchId": "7", "spark.jobGroup.id": "run"}


class Context:
    """Stands for that of a task, which Spark makes."""

    def __init__(self, properties: dict[str, str]) -> None:
        self.getLocalProperty = properties.get

    def partitionId(self) -> int:
        return 3

    def attemptNumber(self) -> int:
        return 2

    def stageId(self) -> int:
        return 5


def within(monkeypatch: pytest.MonkeyPatch, context: Context | None) -> None:
    monkeypatch.setattr(TaskContext, "get", lambda: context)


def test_a_task_of_a_stream_has_the_querys_id_and_the_micro_batchs_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    within(monkeypatch, Context(OF_QUERY))
    assert present_task(STREAM) == SinkTask("q", 7, 3, "run")


def test_a_task_of_a_batch_write_has_the_writes_also_within_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    within(monkeypatch, Context(OF_QUERY))
    assert present_task(BATCH) == SinkTask("w", 4, 3)


@pytest.mark.parametrize("context", [None, Context({}), Context({"sql.streaming.queryId": "q"})])
def test_where_spark_does_not_say_it_nothing_is_written(
    monkeypatch: pytest.MonkeyPatch, context: Context | None
) -> None:
    within(monkeypatch, context)
    with pytest.raises(IllegalStateError, match=r"kclient\.delivery=exactly_once"):
        present_task(STREAM)


def test_an_attempt_at_a_task_has_its_number_and_that_of_its_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    within(monkeypatch, Context(OF_QUERY))
    assert present_attempt() == TaskAttempt(3, 2, 5, "q", 7, "run")
    # Somebody's job group is no run of a query.
    within(monkeypatch, Context({"spark.jobGroup.id": "mine"}))
    assert present_attempt() == TaskAttempt(3, 2, 5)
    within(monkeypatch, None)
    assert present_attempt() is None
