"""`df.write.format("kclient")` and `df.writeStream.format("kclient")`."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql import datasource
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from kclient.spark.delivery import deliver
from kclient.spark.options import SinkOptions
from kclient.spark.output import SinkColumns
from kclient.spark.write_report import WriteReport, report_json

_report_log = logging.getLogger("kclient.spark.report")
# Spark collects what workers log, where it is asked to; an application that sets a level of its own is left alone.
if _report_log.level == logging.NOTSET:
    _report_log.setLevel(logging.INFO)
_log = logging.getLogger(__name__)

_ROWS = 10_000

Messages = list["WriterCommitMessage | None"]


class KafkaBatchWriter(DataSourceArrowWriter):
    """Writes on the executors. Holds no client, so that it can be pickled."""

    def __init__(self, options: SinkOptions, columns: SinkColumns) -> None:
        self._options = options
        self._columns = columns

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Write the records of one task."""
        return WriteReport(deliver(self._options.settings, self._columns, iterator))

    def commit(self, messages: Messages) -> None:
        """Every task has written: tell what."""
        _report_log.info("%s", report_json(messages))

    def abort(self, messages: Messages) -> None:
        """A task failed. What the others have written stays, and is written again if Spark repeats the job.

        Never raises, as Spark would show that error instead of the task's.
        """
        _log.warning("The write failed after %s", report_json(messages))


class StreamReports(DataSourceStreamWriter):
    """What the stream writers share: what happens on the driver when the tasks are done."""

    def __init__(self, options: SinkOptions, columns: SinkColumns) -> None:
        self._options = options
        self._columns = columns

    def commit(self, messages: Messages, batchId: int) -> None:  # noqa: N803 - Spark's name
        """Every task of the micro-batch has written: tell what."""
        _report_log.info("%s", report_json(messages, batchId=batchId))

    def abort(self, messages: Messages, batchId: int) -> None:  # noqa: N803 - Spark's name
        """A task failed. Spark runs the micro-batch again after a restart, with the same records. Never raises."""
        _log.warning("The micro-batch failed after %s", report_json(messages, batchId=batchId))


class RowStreamWriter(StreamReports):
    """For PySpark 4.0, which hands a stream's rows over one by one."""

    def __init__(self, options: SinkOptions, columns: SinkColumns, schema: StructType) -> None:
        super().__init__(options, columns)
        self._schema = schema

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Write the records of one task."""
        return WriteReport(deliver(self._options.settings, self._columns, self._batches(iterator)))

    def _batches(self, rows: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa
        from pyspark.sql.pandas.types import to_arrow_schema

        schema = to_arrow_schema(self._schema)
        while True:
            names: Sequence[str] = schema.names
            chunk = [
                dict(zip(names, row, strict=True))
                for row in (next(rows, None) for _ in range(_ROWS))
                if row is not None
            ]
            if not chunk:
                return
            yield pa.RecordBatch.from_pylist(chunk, schema=schema)


def stream_writer(options: SinkOptions, columns: SinkColumns, schema: StructType) -> DataSourceStreamWriter:
    """The writer for this PySpark: it takes Arrow from 4.1 on."""
    if hasattr(datasource, "DataSourceStreamArrowWriter"):
        from kclient.spark.arrow_sink import ArrowStreamWriter

        return ArrowStreamWriter(options, columns)
    return RowStreamWriter(options, columns, schema)
