"""JSON orders from Kafka to Parquet, in a folder for each date. Run it again, and it goes on where it ended.

python examples/spark_etl_parquet.py HOST:PORT TOPIC OUTPUT CHECKPOINT
spark-submit examples/spark_etl_parquet.py ... (the same arguments)
"""

from __future__ import annotations

import sys

from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's users call it

from kclient.spark.pipelines import EtlOptions
from kclient.spark.pipelines.etl import start_etl
from kclient.spark.pipelines.plots import Picture
from kclient.spark.pipelines.session import session
from kclient.spark.pipelines.source import wait

servers, topic, output, checkpoint = sys.argv[1:]

spark = session("orders to Parquet")
query = start_etl(
    spark,
    EtlOptions(
        bootstrap_servers=servers,
        topic=topic,
        schema="order_id string, product string, amount decimal(12,2), time timestamp",
        time_column="time",
        required=("order_id", "amount"),
        output=output,
        checkpoint=checkpoint,
        # Without it the stream ends when it has read what is there, as a job of cron should.
        every=None,
    ),
)
wait(spark, [query])

orders = spark.read.parquet(output)
orders.groupBy("date").count().orderBy("date").show()
start_ms = F.unix_millis(F.window("time", "5 minutes").start)
counts = orders.groupBy(start_ms, "product").count().collect()
picture = Picture("Orders in Parquet").over_time("orders in five minutes", "orders", 300_000, counts)
# Readers of Parquet leave out names that begin with an underscore.
print(picture.save(f"{output}/_orders.png"))
spark.stop()
