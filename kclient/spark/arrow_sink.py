"""The streaming sink of a PySpark that hands over Arrow (4.1 and newer)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from kclient.spark.delivery import deliver
from kclient.spark.sink import StreamReports
from kclient.spark.write_report import WriteReport


class ArrowStreamWriter(StreamReports, DataSourceStreamArrowWriter):
    """Writes on the executors. Holds no client, so that it can be pickled."""

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Write the records of one task."""
        return WriteReport(deliver(self._options.settings, self._columns, iterator))
