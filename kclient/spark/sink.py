"""`df.write.format("kclient")` and `df.writeStream.format("kclient")`."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC
from itertools import islice
from typing import TYPE_CHECKING, Any

from pyspark.sql import datasource
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StringType, StructType, TimestampNTZType

from kclient.spark.delivery import Tally, deliver
from kclient.spark.exactly_once.delivery import ExactlyOnceDelivery
from kclient.spark.exactly_once.present_task import present_task
from kclient.spark.exactly_once.replay import check_replay
from kclient.spark.output import SinkColumns
from kclient.spark.report_log import report_log
from kclient.spark.sink_options import SinkOptions
from kclient.spark.task_attempt import TaskAttempt, present_attempt
from kclient.spark.worker_garbage import task_begins
from kclient.spark.write_report import (
    WriteReport,
    count_written,
    failure_json,
    first_of_run,
    outcomes,
    report_json,
)
from kclient.spark.zip_finders import forget_zip_finders
from kclient.utils.time import SYSTEM_TIME

if TYPE_CHECKING:
    from kclient.spark.task_metrics import Counter

_report_log = report_log()
_log = logging.getLogger(__name__)

_ROWS = 10_000

Messages = list["WriterCommitMessage | None"]


class ArrowTasks:
    """The tasks of the writers that get Arrow, on the executors. Holds no client, so that it can be pickled."""

    def __init__(self, options: SinkOptions, columns: SinkColumns, counter: Counter | None = None) -> None:
        self._options = options
        self._columns = columns
        self._counter = counter

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Write the records of one task. Logs what an attempt that fails has left: Spark keeps no count of that."""
        attempt, tally, began_ms = present_attempt(), Tally(), SYSTEM_TIME.monotonic_ms()
        if attempt is not None:
            task_begins()
        try:
            report = self._write(iterator, attempt, tally)
            if self._counter is not None:
                count_written(self._counter, report, SYSTEM_TIME.monotonic_ms() - began_ms)
            forget_zip_finders()
            return report
        except BaseException as error:
            once = self._options.exactly_once is not None
            _report_log.warning("%s", failure_json(attempt, tally, error, exactly_once=once))
            raise

    def _write(self, iterator: Iterator[Any], attempt: TaskAttempt | None, tally: Tally) -> WriteReport:
        settings, once = self._options.settings, self._options.exactly_once
        if once is None:
            return WriteReport(deliver(settings, self._columns, iterator, tally), attempt=attempt)
        outcome = ExactlyOnceDelivery(settings, once, self._columns).deliver(
            present_task(once), iterator, tally
        )
        return WriteReport(outcome.written, outcome, attempt)

    def _check_replay(self, messages: Messages) -> None:
        once = self._options.exactly_once
        if once is not None and once.repeatable:
            check_replay(self._options.settings, once.marker_partition, outcomes(messages))


class KafkaBatchWriter(ArrowTasks, DataSourceArrowWriter):
    """The writer of a batch query: tasks on the executors, their reports on the driver."""

    def commit(self, messages: Messages) -> None:
        """Every task has written: tell what. Raises if the write ran before and had rows in other tasks."""
        self._check_replay(messages)
        _report_log.info("%s", report_json(messages))

    def abort(self, messages: Messages) -> None:
        """A task failed. What the others have written stays, and is written again if Spark repeats the job.

        Never raises, as Spark would show that error instead of the task's.
        """
        _log.warning("The write failed after %s", report_json(messages))


class StreamReports(ArrowTasks, DataSourceStreamWriter):
    """The base of the stream writers, with their part on the driver, when the tasks are done."""

    def commit(self, messages: Messages, batchId: int) -> None:  # noqa: N803 - Spark's name
        """Log the reports of the tasks, all of which have written. Raises if other tasks had rows in it before."""
        self._check_replay(messages)
        _report_log.info("%s", report_json(messages, batchId=batchId, **first_of_run(messages)))

    def abort(self, messages: Messages, batchId: int) -> None:  # noqa: N803 - Spark's name
        """A task failed. Spark runs the micro-batch again after a restart, with the same records. Never raises."""
        _log.warning("The micro-batch failed after %s", report_json(messages, batchId=batchId))


class RowStreamWriter(StreamReports):
    """For PySpark 4.0, which hands a stream's rows over one by one."""

    def __init__(
        self, options: SinkOptions, columns: SinkColumns, schema: StructType, counter: Counter | None = None
    ) -> None:
        super().__init__(options, columns, counter)
        self._schema = schema

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Write the records of one task."""
        return super().write(self._batches(iterator))

    def _batches(self, rows: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        from kclient.spark.arrow import TYPES

        names = self._columns.names
        fields = {field.name: (place, field.dataType) for place, field in enumerate(self._schema)}
        places = [fields[name][0] for name in names]
        # Keys and values may be text, and times local; all other columns have one type.
        others = {StringType: pa.string(), TimestampNTZType: pa.timestamp("us")}
        kinds = [others.get(type(fields[name][1]), TYPES[name]) for name in names]
        while chunk := list(islice(rows, _ROWS)):
            arrays = []
            for place, kind in zip(places, kinds, strict=True):
                values = [row[place] for row in chunk]
                if pa.types.is_timestamp(kind) and kind.tz is not None:
                    # Spark makes them local times that do not say so, which Arrow would take for UTC.
                    values = [value and value.astimezone(UTC) for value in values]
                arrays.append(pa.array(values, kind))
            yield pa.RecordBatch.from_arrays(arrays, names=names)


def stream_writer(
    options: SinkOptions, columns: SinkColumns, schema: StructType, counter: Counter | None
) -> DataSourceStreamWriter:
    """The writer for this PySpark: it takes Arrow from 4.1 on."""
    if hasattr(datasource, "DataSourceStreamArrowWriter"):
        from kclient.spark.arrow_sink import ArrowStreamWriter

        return ArrowStreamWriter(options, columns, counter)
    return RowStreamWriter(options, columns, schema, counter)
