"""Errors: what can go wrong, how it is told, and what to do about it.

python examples/error_handling.py [HOST:PORT]
"""

from __future__ import annotations

import sys

from kclient import (
    ConfigError,
    JsonDeserializer,
    KafkaConsumer,
    KafkaProducer,
    KafkaTimeoutError,
    RecordDeserializationError,
    RecordTooLargeError,
)

servers = sys.argv[1] if len(sys.argv) > 1 else "embedded://examples"

# A typo in a setting is found at once, with the name that was probably meant. (A type checker finds one in a keyword
# argument before that.)
try:
    KafkaProducer({"bootstrap.servers": servers, "linger.msec": 5})
except ConfigError as error:
    print(f"1. {error}")

# A broker that is not there: the call fails when its time is over, and says what was tried.
try:
    with KafkaProducer(bootstrap_servers="localhost:1", max_block_ms=300) as producer:
        producer.send("payments", b"x")
except KafkaTimeoutError as error:
    print(f"2. {error}")

with KafkaProducer(bootstrap_servers=servers) as producer:
    # What is wrong on its face is raised by send() itself ...
    try:
        producer.send("payments", b"x" * 2_000_000)
    except RecordTooLargeError as error:
        print(f"3. {error}")

    # ... what only the broker can know comes with the future, or to on_delivery.
    future = producer.send("payments", b'{"amount": 3}')
    failure = future.exception(timeout=30)
    print(f"4. delivered: {failure is None}")
    producer.send("payments", b"not json")
    producer.send("payments", b'{"amount": 4}')

# A record that cannot be deserialized: the error says which, and the position stays before it. Seek past it,
# or send its raw bytes to a dead letter topic first.
with KafkaConsumer(
    bootstrap_servers=servers,
    group_id="payments",
    auto_offset_reset="earliest",
    value_deserializer=JsonDeserializer(),
) as consumer:
    consumer.subscribe(["payments"])
    amounts: list[int] = []
    while len(amounts) < 2:
        try:
            for record in consumer.poll(timeout_ms=1000):
                amounts.append(record.value["amount"] if record.value else 0)  # noqa: PERF401
        except RecordDeserializationError as error:
            print(f"5. {error}")
            if error.topic_partition is not None:
                consumer.seek(error.topic_partition, error.offset + 1)
    print(f"6. amounts: {amounts}")
