"""Records of Kafka as a frame, and how long a query runs."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from kclient.spark.pipelines.options import Stream
from kclient.spark.stream_reader import SPARK_HAS_LIMITS
from kclient.utils.time import SYSTEM_TIME

# What a dead letter tells of its source, and nothing else: columns that are not named are not made.
COLUMNS = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "headers array<struct<key: string, value: binary>>"
)
# How Spark's words for what a query does begin, from its start until its sources are there.
_INITIALIZING = "Initializing"
_LOOK_AGAIN_S = 0.05
# Python has to start, and import PySpark and kclient. What must not happen at once is over before that, so that a query
# which needs longer holds up nobody.
_SOURCE_WITHIN_MS = 30_000


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
    if options.max_offsets_per_trigger is not None:
        chosen["maxOffsetsPerTrigger"] = str(options.max_offsets_per_trigger)
        # For a Spark that does not tell its trigger; there it is never availableNow, see `start`.
        chosen["kclient.trigger"] = "processing"
    return spark.readStream.format("kclient").schema(COLUMNS).options(**chosen).load()


def start(
    writer: DataStreamWriter, options: Stream, name: str, checkpoint: str | None = None
) -> StreamingQuery:
    """Start a query with the stream's trigger and checkpoint; returns when its source is there.

    A query that fails until then is returned too, and its error comes from waiting for it. Queries of one session have
    to be started by one thread: see `wait_for_source`.
    """
    writer = writer.queryName(name).option("checkpointLocation", checkpoint or options.checkpoint)
    if options.every is not None:
        query = writer.trigger(processingTime=options.every).start()
    elif SPARK_HAS_LIMITS:
        query = writer.trigger(availableNow=True).start()
    else:
        query = writer.trigger(processingTime="0 seconds").start()
        threading.Thread(target=_end_when_done, args=(query,), name=f"end-{name}", daemon=True).start()
    wait_for_source(query)
    return query


def wait_for_source(query: StreamingQuery) -> None:
    """Wait until the query has its source or has ended, for half a minute at most; only then start the next one.

    All queries that read the same format in Python share one map, the environment of their Python processes. The first
    to make its source adds entries to it, without a lock. When two do so at once, the map may count an entry twice, and
    from then on every query of the session fails with "Task not serializable" and "Illegal size 5 of collection,
    expected 6". Once the entries are there they are only replaced, which breaks nothing.
    """
    timer = SYSTEM_TIME.timer(_SOURCE_WITHIN_MS)
    try:
        while query.status["message"].startswith(_INITIALIZING) and not timer.is_expired():
            if query.awaitTermination(_LOOK_AGAIN_S):
                return
    except StreamingQueryException:
        # Told to who waits for the query, together with the others.
        return


def _end_when_done(query: StreamingQuery) -> None:
    """End the query as AvailableNow does with other sources: read all there is, within the limits, and
    close windows.

    Before PySpark 4.2 AvailableNow is a single micro-batch for sources in Python, after which no window
    is closed.
    """
    try:
        query.processAllAvailable()
        query.stop()
    except PySparkException:
        # The query has failed, or was stopped from elsewhere: who waits for it is told.
        return


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
