"""The streaming sink of a PySpark that hands over Arrow (4.1 and newer)."""

from __future__ import annotations

from pyspark.sql.datasource import DataSourceStreamArrowWriter

from kclient.spark.sink import StreamReports


class ArrowStreamWriter(StreamReports, DataSourceStreamArrowWriter):
    """The writer of a stream, by which Spark knows that it takes Arrow."""
