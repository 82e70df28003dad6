"""Send records and look at where they went.

python examples/produce.py [HOST:PORT]      (default: an embedded broker that ends with the program)
"""

from __future__ import annotations

import sys

from kclient import KafkaError, KafkaProducer, RecordMetadata


def delivered(_metadata: RecordMetadata, error: KafkaError | None) -> None:
    """Called on the producer's I/O thread, once for each record, whatever happened to it."""
    if error is not None:
        print(f"lost: {error}")


servers = sys.argv[1] if len(sys.argv) > 1 else "embedded://examples"

# Leaving the block flushes: every record is delivered or has failed by then.
with KafkaProducer(bootstrap_servers=servers, compression_type="lz4") as producer:
    # A future for those who want to wait ...
    metadata = producer.send("greetings", b"hello", key=b"en").result(timeout=30)
    print(f"{metadata.topic}-{metadata.partition} at offset {metadata.offset}")

    # ... and a callback for those who do not. Records with the same key keep their order.
    for number in range(1000):
        producer.send("greetings", b"hello %d" % number, key=b"en", on_delivery=delivered)

print("all delivered")
