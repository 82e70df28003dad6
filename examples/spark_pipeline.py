"""The whole way: orders to Parquet, bad ones to dead letters, turnover per window to Parquet and back to Kafka.

python examples/spark_pipeline.py HOST:PORT TOPIC OUTPUT CHECKPOINT
spark-submit examples/spark_pipeline.py ... (the same arguments)

Kill it at any moment and start it again: kclient/spark/pipelines/events.py says why the results are the same.
"""

from __future__ import annotations

import sys

from kclient.spark import KafkaLagListener
from kclient.spark.pipelines import EventsOptions
from kclient.spark.pipelines.events import start_events
from kclient.spark.pipelines.session import session
from kclient.spark.pipelines.source import wait

servers, topic, output, checkpoint = sys.argv[1:]

spark = session("orders", {"spark.sql.shuffle.partitions": "2"})
spark.streams.addListener(
    KafkaLagListener(on_lag=lambda query, behind: print(f"{query}: {sum(behind.values())} behind"))
)
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

spark.read.parquet(f"{output}/windows").orderBy("window_start", "product").show(10)
spark.stop()
