"""Read, process, write: every order becomes an invoice, and what is no order a dead letter.

python examples/read_process_write.py [HOST:PORT]
"""

import sys
import threading
import time

from kclient import ConsumerRecord, KafkaConsumer, KafkaProducer, ProducerRecord
from kclient.processing import run

servers = sys.argv[1] if len(sys.argv) > 1 else "embedded://examples"
orders = f"orders-{time.time_ns()}"
stop = threading.Event()


def invoice(record: ConsumerRecord[bytes, bytes]) -> ProducerRecord[bytes, bytes]:
    if record.offset == 3:  # a service goes on until SIGTERM
        stop.set()
    return ProducerRecord("invoices", b"to pay: %d" % int(record.value or b""), key=record.key)


# Exactly once, on a broker that has transactions: transactional_id="invoices-1" here, isolation_level="read_committed"
# there, and exactly_once=True below.
with KafkaProducer(bootstrap_servers=servers) as producer:
    for value in (b"20", b"30", b"twenty", b"40"):
        producer.send(orders, value, key=b"customer 7")
    with KafkaConsumer(
        bootstrap_servers=servers, group_id=orders, auto_offset_reset="earliest", enable_auto_commit=False
    ) as consumer:
        print(run(consumer, producer, invoice, topics=[orders], dead_letter_topic="no-orders", stop=stop))
