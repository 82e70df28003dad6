"""JSON events to Parquet, in a folder for each date.

Spark's own file sink writes the files, and a log of them in `_spark_metadata`: a micro-batch that is run again after
a crash adds its files to the log once, and Spark reads what the log says. So every row is there exactly once for who
reads the folder with Spark; other tools also see the files of an attempt that was cut off. Where those read it too,
take the pipeline `events`, which replaces what was cut off.

Bad rows are left out; `events` and `dead_letters` keep them.
"""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from kclient.spark.pipelines.options import EtlOptions
from kclient.spark.pipelines.output_schema import settle
from kclient.spark.pipelines.parsing import dated, good, parse
from kclient.spark.pipelines.source import records, start


def start_etl(spark: SparkSession, options: EtlOptions) -> StreamingQuery:
    """Start the query `etl`."""
    events = dated(good(parse(records(spark, options), options)), options)
    settle(spark, options.output, events.schema, ("date",))
    writer = events.writeStream.format("parquet").partitionBy("date").option("path", options.output)
    return start(writer.outputMode("append"), options, "etl")
