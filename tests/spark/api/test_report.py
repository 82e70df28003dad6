"""Progress of running pipelines, as Spark tells of it and as people read it."""

from __future__ import annotations

import uuid
from types import SimpleNamespace
from typing import Any

import pytest

from kclient.common.topic_partition import TopicPartition
from kclient.spark.pipelines.report import Progress, ProgressListener, Totals

ID = uuid.UUID(int=7)
TIME_MS = 1_735_732_800_500


def event(
    name: str | None = "events", *, dropped: tuple[int, ...] = (), latest: str | None = '{"t": {"0": 15}}'
) -> Any:
    source = SimpleNamespace(endOffset='{"t": {"0": 10}}', latestOffset=latest)
    return SimpleNamespace(
        progress=SimpleNamespace(
            name=name,
            id=ID,
            batchId=3,
            numInputRows=1000,
            timestamp="2025-01-01T12:00:00.500Z",
            eventTime={},
            observedMetrics={},
            sources=[source],
            stateOperators=[SimpleNamespace(numRowsDroppedByWatermark=each) for each in dropped],
        )
    )


def told(*events: Any) -> list[Progress]:
    found: list[Progress] = []
    listener = ProgressListener(found.append)
    for each in events:
        listener.onQueryProgress(each)
    return found


def test_a_micro_batch_is_told_of_with_the_lag_that_it_leaves() -> None:
    assert told(event()) == [Progress("events", 3, 1000, 0, 5, TIME_MS)]


def test_what_any_operator_of_a_query_without_counts_dropped_is_late() -> None:
    assert told(event(dropped=(2, 0, 5)))[0].late_rows == 7


def test_who_waits_for_ended_queries_waits_until_all_was_told() -> None:
    listener = ProgressListener(lambda progress: None)
    query: Any = SimpleNamespace(runId=ID)
    listener.onQueryTerminated(SimpleNamespace(id=ID, runId=ID))  # type: ignore[arg-type]
    assert listener.wait_for([query])


def test_totals_are_the_sums_of_all_micro_batches() -> None:
    totals = Totals()
    for rows, late in ((1000, 3), (500, 0)):
        totals.add(Progress("events", 3, rows, late, 0, TIME_MS))
    assert str(totals) == "1,500 rows, 3 too late for their window"


def test_a_query_without_a_name_goes_by_its_id() -> None:
    assert told(event(None)) == [Progress(str(ID), 3, 1000, 0, 5, TIME_MS)]


def test_a_progress_that_tells_of_no_lag_is_told_of_too_with_the_last_that_is_known() -> None:
    assert [each.behind for each in told(event(latest=None), event(), event(latest=None))] == [0, 5, 5]


def test_it_knows_the_lag_of_each_partition_as_well() -> None:
    listener = ProgressListener(lambda progress: None)
    listener.onQueryProgress(event())
    assert listener.behind("events") == {TopicPartition("t", 0): 5}


@pytest.mark.parametrize(("late", "said"), [(0, ""), (1234, ", 1,234 too late for their window")])
def test_the_line_speaks_of_late_rows_only_where_there_are_any(late: int, said: str) -> None:
    text = str(Progress("events", 3, 1_000_000, late, 5000, TIME_MS))
    assert text == f"events: micro-batch 3, 1,000,000 rows{said}, 5,000 behind"
