"""The attempt at one of Spark's tasks that runs in this process."""

from __future__ import annotations

import attrs
from pyspark import TaskContext

# Spark sets these for the jobs of a streaming query.
QUERY_ID = "sql.streaming.queryId"
BATCH_ID = "streaming.sql.batchId"
RUN_ID = "spark.jobGroup.id"


@attrs.frozen
class TaskAttempt:
    """An attempt at a task, as Spark tells the task of it. Immutable, can be pickled."""

    partition: int
    """The number of the task in its stage, which is that of the sink's partition."""
    attempt: int
    """The number of attempts at the task that began before, in this attempt at the stage."""
    stage: int
    query_id: str | None = None
    """The streaming query; None outside of one, as are the others."""
    batch_id: int | None = None
    run_id: str | None = None

    def as_json(self) -> dict[str, object]:
        """The attempt in a line of the report."""
        found: dict[str, object] = {"partition": self.partition, "attempt": self.attempt, "stage": self.stage}
        if self.query_id is not None:
            found |= {"query": self.query_id, "batchId": self.batch_id}
        return found


def present_attempt() -> TaskAttempt | None:
    """Return the attempt that runs here, None outside of Spark's tasks."""
    context = TaskContext.get()
    if context is None:
        return None
    batch_id = context.getLocalProperty(BATCH_ID)
    query_id = context.getLocalProperty(QUERY_ID)
    return TaskAttempt(
        context.partitionId(),
        context.attemptNumber(),
        context.stageId(),
        query_id,
        None if batch_id is None else int(batch_id),
        # A batch write may be in somebody's job group, too.
        None if query_id is None else context.getLocalProperty(RUN_ID),
    )
