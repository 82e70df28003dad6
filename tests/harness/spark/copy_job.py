"""A Spark program that copies one topic to another with a streaming query, in several tasks, until it is killed.

Arguments: bootstrap servers, source, sink, checkpoint, delivery. Configured by spark-defaults.conf in SPARK_CONF_DIR.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from kclient.spark import register


def main() -> None:
    """Copy for ever."""
    servers, source, sink, checkpoint, delivery = sys.argv[1:]
    spark = SparkSession.builder.getOrCreate()
    register(spark)
    kafka = {"kafka.bootstrap.servers": servers, "kafka.metadata.max.age.ms": "5000"}
    frame = (
        spark.readStream.format("kclient")
        .options(**kafka)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .option("kclient.trigger", "processing")
        .option("maxOffsetsPerTrigger", "4000")
        .option("minPartitions", "3")
        .load()
    )
    query = (
        frame.select("key", "value")
        .writeStream.format("kclient")
        .options(**kafka)
        .option("topic", sink)
        .option("kclient.delivery", delivery)
        .option("checkpointLocation", checkpoint)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main()
