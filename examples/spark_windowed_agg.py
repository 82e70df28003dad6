"""Orders and turnover of each product in windows of five minutes, written back to Kafka whenever they change.

python examples/spark_windowed_agg.py HOST:PORT TOPIC OUTPUT_TOPIC CHECKPOINT
spark-submit examples/spark_windowed_agg.py ... (the same arguments)
"""

from __future__ import annotations

import sys

from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's users call it

from kclient.spark.pipelines import WindowOptions
from kclient.spark.pipelines.plots import Picture
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
# The newest record of a window and product holds.
columns = "window_start timestamp, product string, sum_amount decimal(22,2)"
value = F.from_json(F.col("value").cast("string"), columns)
newest = written.load().groupBy("key").agg(F.max_by(value, "offset").alias("window"))
turnover = newest.select(
    F.unix_millis("window.window_start"), "window.product", "window.sum_amount"
).collect()
picture = Picture("Turnover").over_time("in windows of five minutes", "amount", 300_000, turnover)
print(picture.save(f"{checkpoint}.png"))
spark.stop()
