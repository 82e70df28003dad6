"""Rows that are too late for their window: how many they were, and dead letters of them.

Spark leaves out a row whose window had ended before the watermark of the micro-batch before its own. What Spark counts
are groups of such rows, not rows. So the pipelines count the rows of every window of a micro-batch, and its watermark
is looked up in the checkpoint, where Spark keeps it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import attrs
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's users call it

from kclient.spark.pipelines.options import Stream, Windows
from kclient.spark.pipelines.parsing import dead_letters, parse
from kclient.spark.pipelines.sinks import to_topic
from kclient.spark.pipelines.source import COLUMNS

OBSERVED = "kclient.windows"
# A histogram with a bin for each value is exact; with more windows than these in a micro-batch it is an estimate.
_MOST_WINDOWS = 10_000
_EARLIEST = -2


def with_counts(events: DataFrame, options: Windows, checkpoint: str) -> DataFrame:
    """The events, whose number by end of window comes with the progress of each micro-batch."""
    end_ms = F.unix_millis(_window_end(options, F.col(options.event_time("A window"))))
    return events.observe(
        OBSERVED,
        F.histogram_numeric(end_ms, F.lit(_MOST_WINDOWS)).alias("rows"),
        F.max(F.lit(checkpoint)).alias("checkpoint"),
    )


def late_rows(metrics: Mapping[str, Any], batch_id: int, watermark_ms: int) -> int | None:
    """The rows of a micro-batch that were too late, by its metrics and its own watermark; None if it has no counts.

    The watermark that counts is the one before, and never newer: it is looked up only where rows are older.
    """
    if OBSERVED not in metrics:
        return None
    # A window may be there more than once, from several tasks.
    counts = [(each.x, each.y) for each in metrics[OBSERVED].rows or ()]
    if not counts or min(counts)[0] > watermark_ms:
        return 0
    spark = SparkSession.builder.getOrCreate()
    limit_ms = _planned(spark, metrics[OBSERVED].checkpoint, batch_id - 1).watermark_ms
    return int(sum(rows for end_ms, rows in counts if end_ms <= limit_ms))


class LateRows:
    """Dead letters of the rows that are too late for their window, for `late_topic`.

    Spark hands late rows to nobody, so a micro-batch whose watermark is set reads its records once more. It finds the
    same ones when it is run again.
    """

    def __init__(self, spark: SparkSession, options: Windows, checkpoint: str) -> None:
        self._spark = spark
        self._options = options
        self._checkpoint = checkpoint

    def write(self, batch_id: int) -> None:
        """Write those of the micro-batch `batch_id`, which is at work."""
        topic = self._options.late_topic
        if topic is None or batch_id == 0:
            return
        before = _planned(self._spark, self._checkpoint, batch_id - 1)
        now = _planned(self._spark, self._checkpoint, batch_id)
        if before.watermark_ms and before.offsets != now.offsets:
            parsed = parse(_between(self._spark, self._options, before.offsets, now.offsets), self._options)
            to_topic(dead_letters(self._late(parsed, before.watermark_ms)), self._options, topic)

    def _late(self, parsed: DataFrame, watermark_ms: int) -> DataFrame:
        time = self._options.event_time("A window")
        end = _window_end(self._options, F.col("event")[time])
        late = F.unix_millis(end) <= watermark_ms
        return (
            parsed.where("error IS NULL")
            .where(late)
            .withColumn("error", F.lit(f"{time} is too late for its window"))
        )


def _window_end(options: Windows, time: Column) -> Column:
    # `window` is for groups; in a condition it is no expression like others.
    length_ms = options.window_ms
    ms = F.unix_millis(time)
    return F.timestamp_millis(ms - F.pmod(ms, F.lit(length_ms)) + length_ms)


@attrs.frozen
class _Planned:
    """The plan of a micro-batch, as Spark has written it down before it began."""

    watermark_ms: int
    offsets: Mapping[str, Mapping[str, int]]


def _planned(spark: SparkSession, checkpoint: str, batch_id: int) -> _Planned:
    if batch_id < 0:
        return _Planned(0, {})
    # Wherever the checkpoint lies, Spark can read it.
    _version, metadata, offsets = (
        row.value for row in spark.read.text(f"{checkpoint}/offsets/{batch_id}").collect()
    )
    return _Planned(json.loads(metadata)["batchWatermarkMs"], json.loads(offsets))


def _between(
    spark: SparkSession,
    options: Stream,
    start: Mapping[str, Mapping[str, int]],
    end: Mapping[str, Mapping[str, int]],
) -> DataFrame:
    """The records of a micro-batch, read once more."""
    begins = {
        topic: {number: start.get(topic, {}).get(number, _EARLIEST) for number in partitions}
        for topic, partitions in end.items()
    }
    chosen = {
        **options.source_settings,
        "assign": json.dumps({topic: [int(number) for number in numbers] for topic, numbers in end.items()}),
        "startingOffsets": json.dumps(begins),
        "endingOffsets": json.dumps(end),
        "includeHeaders": "true",
    }
    return spark.read.format("kclient").schema(COLUMNS).options(**chosen).load()
