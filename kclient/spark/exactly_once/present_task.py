"""The task that runs in this process, as Spark tells of it."""

from __future__ import annotations

from pyspark import TaskContext

from kclient.errors import IllegalStateError
from kclient.spark.exactly_once.sink_task import SinkTask
from kclient.spark.sink_options import ExactlyOnceOptions
from kclient.spark.task_attempt import BATCH_ID, QUERY_ID, RUN_ID


def present_task(options: ExactlyOnceOptions) -> SinkTask:
    """Return the task that runs in this process. Raises IllegalStateError outside of Spark's tasks."""
    context = TaskContext.get()
    if context is None:
        raise IllegalStateError("kclient.delivery=exactly_once: this is no task of Spark's")
    if options.write_id is not None:
        return SinkTask(options.write_id, options.epoch, context.partitionId())
    query_id, batch_id = context.getLocalProperty(QUERY_ID), context.getLocalProperty(BATCH_ID)
    if query_id is None or batch_id is None:
        raise IllegalStateError(
            "kclient.delivery=exactly_once: Spark does not tell the task which query and micro-batch it is of "
            f"({QUERY_ID}, {BATCH_ID})"
        )
    return SinkTask(query_id, int(batch_id), context.partitionId(), context.getLocalProperty(RUN_ID))
