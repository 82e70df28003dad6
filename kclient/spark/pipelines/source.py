"""Records of Kafka as a frame, and how long a query runs."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import streaming as spark_streaming
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from kclient.spark.pipelines.options import Stream

_log = logging.getLogger(__name__)

# What a dead letter tells of its source, and nothing else: columns that are not named are not made.
COLUMNS = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "headers array<struct<key: string, value: binary>>"
)


def records(spark: SparkSession, options: Stream) -> DataFrame:
    """The records of the stream's topics, with the columns of a dead letter."""
    chosen = {
        **options.source_settings,
        "subscribe": options.topic,
        "startingOffsets": options.starting_offsets,
        "includeHeaders": "true",
    }
    if options.commit_group_id is not None:
        chosen["commitGroupId"] = options.commit_group_id
    limit = options.max_offsets_per_trigger
    if limit is not None:
        if options.every is None and not hasattr(spark_streaming, "datasource"):
            _log.warning(
                "max_offsets_per_trigger needs PySpark 4.2 for a stream that ends; it is not applied"
            )
        else:
            chosen["maxOffsetsPerTrigger"] = str(limit)
    return spark.readStream.format("kclient").schema(COLUMNS).options(**chosen).load()


def start(
    writer: DataStreamWriter, options: Stream, name: str, checkpoint: str | None = None
) -> StreamingQuery:
    """Start a query with the stream's trigger and checkpoint."""
    writer = writer.queryName(name).option("checkpointLocation", checkpoint or options.checkpoint)
    if options.every is None:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=options.every).start()


def wait(spark: SparkSession, queries: Sequence[StreamingQuery]) -> None:
    """Wait until all have ended. When one fails the others are stopped, and its error is raised.

    The others would go on alone otherwise, which nobody would see.
    """
    # The session keeps the error of what failed before, of other queries too. Each is forgotten before ours are asked
    # for theirs, so that none of them is missed.
    spark.streams.resetTerminated()
    try:
        while any(query.isActive for query in queries) and not any(query.exception() for query in queries):
            spark.streams.awaitAnyTermination()
            spark.streams.resetTerminated()
    finally:
        for query in queries:
            query.stop()
    for query in queries:
        query.awaitTermination()
