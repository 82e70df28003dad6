"""The whole way: orders to Parquet, bad ones to dead letters, turnover per window to Parquet and back to Kafka.

python examples/spark_pipeline.py HOST:PORT TOPIC OUTPUT CHECKPOINT
spark-submit examples/spark_pipeline.py ... (the same arguments)

Kill it at any moment and start it again: kclient/spark/pipelines/events.py says why the results are the same.
"""

from __future__ import annotations

import sys

from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's users call it

from kclient.spark.pipelines import EventsOptions
from kclient.spark.pipelines.events import start_events
from kclient.spark.pipelines.plots import Picture
from kclient.spark.pipelines.report import Progress, ProgressListener
from kclient.spark.pipelines.session import session
from kclient.spark.pipelines.source import wait

servers, topic, output, checkpoint = sys.argv[1:]

spark = session("orders", {"spark.sql.shuffle.partitions": "2"})
progress: list[Progress] = []


def on_progress(micro_batch: Progress) -> None:
    """Tell how far behind the query is, and remember it."""
    print(f"{micro_batch.query}: {micro_batch.behind} behind")
    progress.append(micro_batch)


listener = ProgressListener(on_progress)
spark.streams.addListener(listener)
queries = start_events(
    spark,
    EventsOptions(
        bootstrap_servers=servers,
        topic=topic,
        schema="order_id string, product string, quantity int, amount decimal(12,2), time timestamp",
        time_column="time",
        required=("order_id", "product", "amount"),
        conditions=("event.amount > 0",),
        max_lateness="5 minutes",
        max_ahead="1 minute",
        window="5 minutes",
        watermark="10 minutes",
        group_by=("product",),
        sums=("amount",),
        output=output,
        dead_letter_topic=f"{topic}.dead",
        window_topic=f"{topic}.windows",
        checkpoint=checkpoint,
        commit_group_id="orders-pipeline",
        # "10 seconds": goes on until it is stopped.
        every=None,
    ),
)
wait(spark, queries)
# Spark tells a little later.
listener.wait_for(queries)

windows = spark.read.parquet(f"{output}/windows").orderBy("window_start", "product")
windows.show(10)
letters = spark.read.format("kclient").options(
    **{"kafka.bootstrap.servers": servers, "subscribe": f"{topic}.dead", "includeHeaders": "true"}
)
reason = "CAST(filter(headers, h -> h.key = 'kclient.error')[0].value AS STRING) AS reason"
picture = Picture("Orders")
counts = windows.select(F.unix_millis("window_start"), "product", "events").collect()
picture.over_time("orders in windows of five minutes", "orders", 300_000, counts)
picture.lines("lag", "records behind", [(each.time_ms, each.query, each.behind) for each in progress])
picture.bars("dead letters", "records", letters.load().selectExpr(reason).groupBy("reason").count().collect())
print(picture.save(f"{output}/orders.png"))
spark.stop()
