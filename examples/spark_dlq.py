"""Good orders to one topic, bad ones to another, which says of each what is wrong with it and where it comes from.

python examples/spark_dlq.py HOST:PORT TOPIC OUTPUT_TOPIC DEAD_LETTER_TOPIC CHECKPOINT
spark-submit examples/spark_dlq.py ... (the same arguments)
"""

from __future__ import annotations

import sys

from kclient.spark.pipelines import DeadLetterOptions
from kclient.spark.pipelines.dead_letters import start_dead_letters
from kclient.spark.pipelines.plots import Picture
from kclient.spark.pipelines.session import session
from kclient.spark.pipelines.source import wait

servers, topic, output_topic, dead_letter_topic, checkpoint = sys.argv[1:]

spark = session("dead letters")
query = start_dead_letters(
    spark,
    DeadLetterOptions(
        bootstrap_servers=servers,
        topic=topic,
        schema="order_id string, product string, amount decimal(12,2), time timestamp",
        required=("order_id", "product", "amount"),
        conditions=("event.amount > 0",),
        output_topic=output_topic,
        dead_letter_topic=dead_letter_topic,
        checkpoint=checkpoint,
    ),
)
wait(spark, [query])

letters = spark.read.format("kclient").options(
    **{"kafka.bootstrap.servers": servers, "subscribe": dead_letter_topic, "includeHeaders": "true"}
)
reason = "CAST(filter(headers, h -> h.key = 'kclient.error')[0].value AS STRING) AS reason"
reasons = letters.load().selectExpr(reason).groupBy("reason").count()
reasons.show(truncate=False)
picture = Picture("Dead letters").bars("by reason", "records", reasons.collect())
print(picture.save(f"{checkpoint}.png"))
spark.stop()
