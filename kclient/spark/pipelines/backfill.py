"""The records of a range of time to Parquet, in a folder for each date, in one batch.

The range is that of the records' own times, as Kafka finds them, and `min_partitions` lets several tasks share it. All
rows come into a folder that must be new, or is replaced as a whole: a run that was cut off is simply run again with
`overwrite`. Bad rows are counted and left out.
"""

from __future__ import annotations

import attrs
from pyspark.errors import AnalysisException
from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's users call it

from kclient.errors import ConfigError
from kclient.spark.pipelines.options import BackfillOptions
from kclient.spark.pipelines.parsing import dated, good, parse
from kclient.spark.pipelines.source import COLUMNS


@attrs.frozen
class Backfilled:
    """The number of records in the range, and the number of bad rows among them."""

    records: int
    bad: int


def run_backfill(spark: SparkSession, options: BackfillOptions) -> Backfilled:
    """Read the range and write it; returns when everything is written. Raises ConfigError if `output` is there."""
    chosen = {
        **options.source_settings,
        "subscribe": options.topic,
        "startingTimestamp": str(options.start_ms),
        "endingTimestamp": str(options.end_ms),
        # A partition that has nothing so new has nothing in the range.
        "startingOffsetsByTimestampStrategy": "latest",
    }
    if options.min_partitions is not None:
        chosen["minPartitions"] = str(options.min_partitions)
    source = spark.read.format("kclient").schema(COLUMNS).options(**chosen).load()
    # Kafka finds the first record that is so new; producers' clocks may put older ones behind it.
    within = F.unix_millis("timestamp").between(options.start_ms, options.end_ms - 1)
    counted = Observation("backfill")
    parsed = parse(source.where(within), options).observe(
        counted, F.count("*").alias("records"), F.count("error").alias("bad")
    )
    writer = dated(good(parsed), options).write.partitionBy("date")
    try:
        writer.mode("overwrite" if options.overwrite else "errorifexists").parquet(options.output)
    except AnalysisException as error:
        if error.getCondition() != "PATH_ALREADY_EXISTS":
            raise
        raise ConfigError(
            f"output is {options.output!r}, which is there already; overwrite replaces it.", name="output"
        ) from None
    return Backfilled(counted.get["records"], counted.get["bad"])
