"""Good rows to one topic, bad ones to another, each with the reason and where it comes from in its headers.

Records keep key, value, time and headers; bad ones get `kclient.error`, and both get `kclient.source.topic`,
`.partition` and `.offset`. A micro-batch that is run again after a crash writes its records again: a reader that keeps
one for each source has every record once.

To try bad rows again, read the dead letter topic with this same pipeline.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from kclient.spark.pipelines.options import DeadLetterOptions
from kclient.spark.pipelines.parsing import dead_letters, parse, with_source
from kclient.spark.pipelines.sinks import to_topic
from kclient.spark.pipelines.source import records, start


def start_dead_letters(spark: SparkSession, options: DeadLetterOptions) -> StreamingQuery:
    """Start the query `dead-letters`."""

    def write(parsed: DataFrame, _batch_id: int) -> None:
        parsed.persist()  # two sinks, one read of Kafka
        try:
            rows = parsed.where("error IS NULL").select("key", "value", "timestamp", with_source())
            to_topic(rows, options, options.output_topic)
            to_topic(dead_letters(parsed), options, options.dead_letter_topic)
        finally:
            parsed.unpersist()

    return start(
        parse(records(spark, options), options).writeStream.foreachBatch(write), options, "dead-letters"
    )
