"""Orders joined with a table of products, written back to Kafka with their keys, times and headers.

python examples/spark_enrich_writeback.py HOST:PORT TOPIC OUTPUT_TOPIC TABLE.csv CHECKPOINT
spark-submit examples/spark_enrich_writeback.py ... (the same arguments)

The table has a line of column names, one of which is "product".
"""

from __future__ import annotations

import sys

from kclient.spark.pipelines import EnrichOptions
from kclient.spark.pipelines.enrich import start_enrich
from kclient.spark.pipelines.plots import Picture
from kclient.spark.pipelines.session import session
from kclient.spark.pipelines.source import wait

servers, topic, output_topic, table, checkpoint = sys.argv[1:]

spark = session("enriched orders")
query = start_enrich(
    spark,
    EnrichOptions(
        bootstrap_servers=servers,
        topic=topic,
        schema="order_id string, product string, amount decimal(12,2), time timestamp",
        required=("order_id", "product", "amount"),
        table=table,
        table_format="csv",
        join_on=("product",),
        output_topic=output_topic,
        # By Java's names.
        producer_settings={"compression.type": "lz4"},
        checkpoint=checkpoint,
    ),
)
wait(spark, [query])

written = spark.read.format("kclient").options(
    **{"kafka.bootstrap.servers": servers, "subscribe": output_topic}
)
enriched = written.load().selectExpr("CAST(key AS STRING) AS product", "CAST(value AS STRING)")
enriched.show(10, truncate=False)
picture = Picture("Enriched orders").bars(
    "by product", "orders", enriched.groupBy("product").count().collect()
)
print(picture.save(f"{checkpoint}.png"))
spark.stop()
