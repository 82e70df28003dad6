"""Orders and turnover of each product in windows of five minutes, written back to Kafka whenever they change.

python examples/spark_windowed_agg.py HOST:PORT TOPIC OUTPUT_TOPIC CHECKPOINT
spark-submit examples/spark_windowed_agg.py ... (the same arguments)
"""

from __future__ import annotations

import sys

from kclient.spark.pipelines import WindowOptions
from kclient.spark.pipelines.session import session
from kclient.spark.pipelines.source import wait
from kclient.spark.pipelines.windows import start_windows

servers, topic, output_topic, checkpoint = sys.argv[1:]

spark = session("turnover", {"spark.sql.shuffle.partitions": "2"})
query = start_windows(
    spark,
    WindowOptions(
        bootstrap_servers=servers,
        topic=topic,
        schema="order_id string, product string, amount decimal(12,2), time timestamp",
        time_column="time",
        required=("product", "amount"),
        window="5 minutes",
        watermark="10 minutes",
        group_by=("product",),
        sums=("amount",),
        output_topic=output_topic,
        # True: each window once, when it is closed.
        final=False,
        checkpoint=checkpoint,
    ),
)
wait(spark, [query])

written = spark.read.format("kclient").options(
    **{"kafka.bootstrap.servers": servers, "subscribe": output_topic}
)
written.load().selectExpr("CAST(value AS STRING)").show(10, truncate=False)
spark.stop()
