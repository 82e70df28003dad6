"""Read everything since a moment in time.

python examples/seek_to_time.py [HOST:PORT]
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta

from kclient import KafkaConsumer, KafkaProducer, TopicPartition

servers = sys.argv[1] if len(sys.argv) > 1 else "embedded://examples"
midnight = datetime(2024, 6, 1, tzinfo=UTC)


def milliseconds(moment: datetime) -> int:
    """Kafka's timestamps: milliseconds since the epoch."""
    return int(moment.timestamp() * 1000)


with KafkaProducer(bootstrap_servers=servers) as producer:
    for hour in range(24):
        moment = midnight + timedelta(hours=hour)
        producer.send("temperatures", b"%d degrees" % (hour % 12 + 10), timestamp_ms=milliseconds(moment))

with KafkaConsumer(bootstrap_servers=servers) as consumer:
    partitions = [
        TopicPartition("temperatures", p.partition) for p in consumer.partitions_for("temperatures")
    ]
    consumer.assign(partitions)
    evening = milliseconds(midnight + timedelta(hours=18))
    ends = consumer.end_offsets(partitions)
    for partition, found in consumer.offsets_for_times(dict.fromkeys(partitions, evening)).items():
        # None means that no record is that late: then there is nothing to read before the end.
        consumer.seek(partition, ends[partition] if found is None else found.offset)

    while any(consumer.position(partition) < end for partition, end in ends.items()):
        for record in consumer.poll(timeout_ms=1000):
            at = datetime.fromtimestamp(record.timestamp_ms / 1000, UTC)
            print(f"{at:%H:%M} {(record.value or b'').decode()}")
