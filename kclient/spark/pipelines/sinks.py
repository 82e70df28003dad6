"""Sinks of micro-batches: topics, and folders of Parquet that a micro-batch replaces when it is run again."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's users call it

from kclient.spark.pipelines.options import JsonTopic


def to_json(*columns: Column | str) -> Column:
    """The columns as one JSON object, with those that are null."""
    return F.to_json(F.struct(*columns), {"ignoreNullFields": "false"})


def to_topic(frame: DataFrame, options: JsonTopic, topic: str) -> None:
    """Write the rows of a micro-batch as records."""
    frame.write.format("kclient").mode("append").options(**options.sink_settings, topic=topic).save()


class BatchFolders:
    """Parquet in a folder for each micro-batch, `batch=N`: exactly once, by replacing.

    Spark runs a micro-batch that was cut off again, under its number and with the same rows, and nothing else ever
    writes into its folder. So the folder is replaced, whatever part of it was there. Until that has happened it may
    hold a part of its files; it is whole when it has the file _SUCCESS.

    A micro-batch without rows makes no folder, except the first of a run, which may be one that is run again.
    """

    def __init__(self, path: str, partition_by: tuple[str, ...] = ()) -> None:
        self._path = path
        self._partition_by = partition_by
        self._first = True

    def write(self, frame: DataFrame, batch_id: int) -> None:
        """Write the rows of micro-batch `batch_id`, instead of what it has written before."""
        if not self._first and frame.isEmpty():
            return
        folder = f"{self._path.rstrip('/')}/batch={batch_id}"
        frame.write.mode("overwrite").partitionBy(*self._partition_by).parquet(folder)
        self._first = False
