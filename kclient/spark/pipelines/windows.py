"""Counts and sums per window of the event's time, written back to Kafka.

By default a record is written whenever a window has changed (output mode update), with the window and its group as key:
the newest record of a key holds its present numbers, and a compacted topic keeps just that. With `final` each window is
written once, when the watermark has passed its end.

A micro-batch that is run again after a crash writes its records again, with the same keys and values: for who reads the
newest of a key nothing has changed.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's users call it
from pyspark.sql.streaming import StreamingQuery

from kclient.errors import ConfigError
from kclient.spark.foreach_batch import batch_writer
from kclient.spark.pipelines.late import LateRows, with_counts
from kclient.spark.pipelines.options import WindowOptions, Windows
from kclient.spark.pipelines.parsing import good, parse
from kclient.spark.pipelines.sinks import to_json
from kclient.spark.pipelines.source import records, start


def start_windows(spark: SparkSession, options: WindowOptions) -> StreamingQuery:
    """Start the query `windows`."""
    frame = windowed(good(parse(records(spark, options), options)), options, options.checkpoint)
    late = LateRows(spark, options, options.checkpoint)
    # By the batch sink in both modes: Spark refuses update for streaming sinks in Python.
    to_kafka = batch_writer(**options.sink_settings, topic=options.output_topic)

    def write(changed: DataFrame, batch_id: int) -> None:
        to_kafka(changed, batch_id)
        late.write(batch_id)

    writer = as_records(frame, options).writeStream.outputMode("append" if options.final else "update")
    return start(writer.foreachBatch(write), options, "windows")


def windowed(events: DataFrame, options: Windows, checkpoint: str) -> DataFrame:
    """`window_start`, `window_end`, the groups, `events` (how many) and `sum_X` for each of the sums."""
    time = options.event_time("A window")
    for name in (*options.group_by, *options.sums):
        if name not in events.columns:
            raise ConfigError(
                f"The schema has no column {name!r} to group by or to sum; there is {', '.join(events.columns)}.",
                name="schema",
            )
    counted = with_counts(events.withWatermark(time, options.watermark), options, checkpoint)
    frame = counted.groupBy(F.window(time, options.window), *options.group_by)
    totals = [F.count("*").alias("events"), *(F.sum(name).alias(f"sum_{name}") for name in options.sums)]
    return frame.agg(*totals).select(
        F.col("window.start").alias("window_start"),
        F.col("window.end").alias("window_end"),
        *options.group_by,
        "events",
        *(f"sum_{name}" for name in options.sums),
    )


def as_records(windows: DataFrame, options: Windows) -> DataFrame:
    """Windows as records: the key says which window and group, the value holds everything."""
    return windows.select(
        to_json("window_start", *options.group_by).alias("key"), to_json(*windows.columns).alias("value")
    )
