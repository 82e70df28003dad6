"""The whole way: JSON events from Kafka, through parsing, dead letters and windows, to Parquet and back to Kafka.

Two queries read the topic, each with its own checkpoint:

- `events`: good rows to Parquet (`OUTPUT/events/batch=N/date=D`), bad ones to the dead letter topic.
- `windows`: counts and sums of the good rows per window, when the watermark has closed it, to Parquet
  (`OUTPUT/windows/batch=N`) and to the window topic.

It may be killed at any moment and started again, and comes to the same results as if that had not happened:

- Spark's checkpoint says which offsets belong to micro-batch N. One that was cut off is run again with the same rows:
  offsets are fixed in the checkpoint before anything is read, and what makes a row bad depends on that row alone.
- Parquet: micro-batch N replaces its own folder (`BatchFolders`), so every row is there once.
- Windows: their state is kept with the checkpoint, by micro-batch; one that is run again begins with the state it began
  with, and closes the same windows with the same numbers. Sums of decimals do not depend on the order of rows.
- Kafka: a micro-batch that is run again writes its records again. What tells them apart is in each record. A window
  is closed once, so its key (window and group) is met once, or again with the same value: read the newest of a key, or
  have the topic compacted. A dead letter names the topic, partition and offset that it comes from.
"""

from __future__ import annotations

import attrs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from kclient.errors import ConfigError
from kclient.spark.pipelines.late import LateRows
from kclient.spark.pipelines.options import EventsOptions
from kclient.spark.pipelines.output_schema import settle
from kclient.spark.pipelines.parsing import dated, dead_letters, good, parse
from kclient.spark.pipelines.sinks import BatchFolders, to_topic
from kclient.spark.pipelines.source import records, start
from kclient.spark.pipelines.windows import as_records, windowed


def start_events(spark: SparkSession, options: EventsOptions) -> list[StreamingQuery]:
    """Start both queries, one after the other, `events` and `windows`; `source.wait` waits for them."""
    if options.starting_offsets == "latest":
        raise ConfigError(
            "starting_offsets=latest would be looked up for each of the two queries; give offsets as JSON.",
            name="starting_offsets",
        )
    return [_start_events(spark, options), _start_windows(spark, options)]


def _start_events(spark: SparkSession, options: EventsOptions) -> StreamingQuery:
    folders = BatchFolders(f"{options.output}/events", partition_by=("date",))

    def write(parsed: DataFrame, batch_id: int) -> None:
        parsed.persist()  # two sinks, one read of Kafka
        try:
            folders.write(dated(good(parsed), options), batch_id)
            to_topic(dead_letters(parsed), options, options.dead_letter_topic)
        finally:
            parsed.unpersist()

    source = parse(records(spark, options), options)
    settle(spark, f"{options.output}/events", dated(good(source), options).schema, ("batch", "date"))
    writer = source.writeStream.foreachBatch(write)
    return start(writer, options, "events", f"{options.checkpoint}/events")


def _start_windows(spark: SparkSession, options: EventsOptions) -> StreamingQuery:
    folders = BatchFolders(f"{options.output}/windows")

    checkpoint = f"{options.checkpoint}/windows"
    late = LateRows(spark, options, checkpoint)

    def write(windows: DataFrame, batch_id: int) -> None:
        late.write(batch_id)
        windows.persist()
        try:
            folders.write(windows, batch_id)
            to_topic(as_records(windows, options), options, options.window_topic)
        finally:
            windows.unpersist()

    # The group belongs to the query that keeps the events.
    source = records(spark, attrs.evolve(options, commit_group_id=None))
    closed = windowed(good(parse(source, options)), options, checkpoint)
    settle(spark, f"{options.output}/windows", closed.schema, ("batch",))
    writer = closed.writeStream.outputMode("append").foreachBatch(write)
    return start(writer, options, "windows", checkpoint)
