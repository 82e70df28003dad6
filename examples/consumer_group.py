"""Two members of a group share a topic's partitions and commit what they have done.

python examples/consumer_group.py [HOST:PORT]
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Collection

from kclient import (
    ConsumerRebalanceListener,
    KafkaAdminClient,
    KafkaConsumer,
    KafkaProducer,
    NewTopic,
    TopicPartition,
)

servers = sys.argv[1] if len(sys.argv) > 1 else "embedded://examples"
topic = f"orders-{time.time_ns()}"
done = threading.Event()
handled: list[bytes] = []


class Announce(ConsumerRebalanceListener):
    """Runs inside poll(), on the thread that polls."""

    def __init__(self, name: str) -> None:
        self.name = name

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        line = f"{self.name} reads {', '.join(map(str, sorted(partitions))) or 'nothing yet'}\n"
        print(line, end="")  # with its end in one piece, as both workers print


def work(name: str) -> None:
    with KafkaConsumer(
        bootstrap_servers=servers,
        client_id=name,
        group_id=f"billing-{topic}",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    ) as consumer:
        consumer.subscribe([topic], listener=Announce(name))
        while not done.is_set():
            records = consumer.poll(timeout_ms=200)
            handled.extend(record.value or b"" for record in records)
            if records:
                consumer.commit_sync()  # after the work, so that a crash repeats it rather than loses it


with KafkaAdminClient(bootstrap_servers=servers) as admin:
    admin.create_topics([NewTopic(topic, num_partitions=4)])

workers = [threading.Thread(target=work, args=(f"worker-{number}",)) for number in (1, 2)]
for worker in workers:
    worker.start()

with KafkaProducer(bootstrap_servers=servers) as producer:
    for number in range(500):
        producer.send(topic, b"order %d" % number, key=b"customer %d" % (number % 50))

deadline = time.monotonic() + 30
while len(set(handled)) < 500 and time.monotonic() < deadline:
    done.wait(0.1)
done.set()
for worker in workers:
    worker.join()

print(f"handled {len(set(handled))} orders")
sys.exit(0 if len(set(handled)) == 500 else 1)
