"""The orders of a range of time to Parquet, in one batch that many tasks share.

python examples/spark_backfill.py HOST:PORT TOPIC OUTPUT 2025-01-01T00:00:00+00:00 2025-02-01T00:00:00+00:00
spark-submit examples/spark_backfill.py ... (the same arguments)
"""

from __future__ import annotations

import sys
from datetime import datetime

from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's users call it

from kclient.spark.pipelines import BackfillOptions
from kclient.spark.pipelines.backfill import run_backfill
from kclient.spark.pipelines.plots import Picture
from kclient.spark.pipelines.session import session

servers, topic, output, start, end = sys.argv[1:]

spark = session("backfill")
done = run_backfill(
    spark,
    BackfillOptions(
        bootstrap_servers=servers,
        topic=topic,
        schema="order_id string, product string, amount decimal(12,2), time timestamp",
        time_column="time",
        required=("order_id", "amount"),
        start_ms=round(datetime.fromisoformat(start).timestamp() * 1000),
        end_ms=round(datetime.fromisoformat(end).timestamp() * 1000),
        output=output,
        min_partitions=4,
    ),
)
print(f"{done.records} records, {done.bad} of them bad")
start_ms = F.unix_millis(F.window("time", "5 minutes").start)
counts = spark.read.parquet(output).groupBy(start_ms, F.lit("written")).count().collect()
picture = Picture("Orders that were filled in").over_time("orders in five minutes", "orders", 300_000, counts)
picture.bars("records of the range", "records", [("written", done.records - done.bad), ("bad", done.bad)])
# Readers of Parquet leave out names that begin with an underscore.
print(picture.save(f"{output}/_orders.png"))
spark.stop()
