"""Read a topic from its beginning to its present end, alone: no group, nothing committed.

python examples/consume.py [HOST:PORT]
"""

from __future__ import annotations

import sys

from kclient import KafkaConsumer, KafkaProducer, StringDeserializer, TopicPartition

servers = sys.argv[1] if len(sys.argv) > 1 else "embedded://examples"

with KafkaProducer(bootstrap_servers=servers) as producer:
    for number in range(10):
        producer.send("numbers", str(number).encode())

with KafkaConsumer(bootstrap_servers=servers, value_deserializer=StringDeserializer()) as consumer:
    partitions = [TopicPartition("numbers", info.partition) for info in consumer.partitions_for("numbers")]
    consumer.assign(partitions)
    consumer.seek_to_beginning(partitions)
    ends = consumer.end_offsets(partitions)

    while any(consumer.position(partition) < end for partition, end in ends.items()):
        for record in consumer.poll(timeout_ms=1000):
            print(f"{record.topic}-{record.partition} @{record.offset}: {record.value}")
