"""JSON orders from Kafka to Parquet, in a folder for each date. Run it again, and it goes on where it ended.

python examples/spark_etl_parquet.py HOST:PORT TOPIC OUTPUT CHECKPOINT
spark-submit examples/spark_etl_parquet.py ... (the same arguments)
"""

from __future__ import annotations

import sys

from kclient.spark.pipelines import EtlOptions
from kclient.spark.pipelines.etl import start_etl
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

spark.read.parquet(output).groupBy("date").count().orderBy("date").show()
spark.stop()
