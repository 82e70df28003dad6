"""Python objects as JSON values, strings as keys, and headers beside them.

python examples/headers_and_json.py [HOST:PORT]
"""

from __future__ import annotations

import sys

from kclient import (
    JsonDeserializer,
    JsonSerializer,
    KafkaConsumer,
    KafkaProducer,
    StringDeserializer,
    StringSerializer,
)

servers = sys.argv[1] if len(sys.argv) > 1 else "embedded://examples"

with KafkaProducer(
    bootstrap_servers=servers, key_serializer=StringSerializer(), value_serializer=JsonSerializer()
) as producer:
    producer.send(
        "people",
        {"name": "Ada", "born": 1815},
        key="ada",
        headers=[("schema", b"person/1"), ("trace", b"7f3a"), ("trace", b"7f3b")],  # names may repeat
    )
    producer.send("people", None, key="nobody")  # a tombstone: no value, so nothing to serialize

with KafkaConsumer(
    bootstrap_servers=servers,
    group_id="readers",
    auto_offset_reset="earliest",
    key_deserializer=StringDeserializer(),
    value_deserializer=JsonDeserializer(),
) as consumer:
    consumer.subscribe(["people"])
    for record in consumer:
        print(f"{record.key}: {record.value}")
        for name, value in record.headers:
            print(f"    {name} = {(value or b'').decode()}")
        if record.key == "nobody":
            break
