"""Topics of their own for tests: made, filled, read back and checked."""

from __future__ import annotations

import time
import uuid
from collections import Counter

from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient, NewTopic, OffsetSpec
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import ConsumerRecord, KafkaConsumer
from kclient.producer import KafkaProducer, RecordMetadata

DEADLINE_S = 60.0


def new_topic(servers: str, partitions: int = 3, **configs: str) -> str:
    """A topic of its own for a test; its name."""
    name = f"t-{uuid.uuid4().hex[:12]}"
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        admin.create_topics(
            [NewTopic(name, partitions, 1, configs={k.replace("_", "."): v for k, v in configs.items()})]
        )
        # The controller has it; a real broker hears of it a moment later.
        wait_until(lambda: name in admin.list_topics(), DEADLINE_S, "the topic")
    return name


def partitions_of(servers: str, topic: str) -> list[TopicPartition]:
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        described = admin.describe_topics([topic])[topic]
    return [TopicPartition(topic, info.partition) for info in described.partitions]


def end_offsets(servers: str, topic: str) -> dict[TopicPartition, int]:
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        specs = dict.fromkeys(partitions_of(servers, topic), OffsetSpec.LATEST)
        return {tp: listed.offset for tp, listed in admin.list_offsets(specs).items()}


def produce(servers: str, topic: str, count: int, **settings: object) -> list[RecordMetadata]:
    """`count` records `k<i % 100>` -> `v<i>`; their metadata in the order of sending. Raises if any failed."""
    with KafkaProducer({"bootstrap.servers": servers, **settings}) as producer:
        futures = [
            producer.send(
                topic, b"v%d" % i, key=b"k%d" % (i % 100), headers=[("n", b"%d" % i), ("none", None)]
            )
            for i in range(count)
        ]
        producer.flush()
        return [future.result(DEADLINE_S) for future in futures]


def read_all(
    servers: str, topic: str, until: int | None = None, **settings: object
) -> list[ConsumerRecord[bytes, bytes]]:
    """Every record of `topic`, read without a group up to the present end (or `until` records)."""
    ends = end_offsets(servers, topic)
    records: list[ConsumerRecord[bytes, bytes]] = []
    with KafkaConsumer({"bootstrap.servers": servers, "enable.auto.commit": False, **settings}) as consumer:
        consumer.assign(list(ends))
        consumer.seek_to_beginning(list(ends))
        deadline = time.monotonic() + DEADLINE_S
        while any(consumer.position(tp) < end for tp, end in ends.items()):
            records.extend(consumer.poll(200))
            if until is not None and len(records) >= until:
                break
            assert time.monotonic() < deadline, f"only {len(records)} records of {sum(ends.values())} came"
    return records


def assert_read_back(records: list[ConsumerRecord[bytes, bytes]], count: int) -> None:
    """The records that `produce(count)` sent: each once, in order per key, with their headers."""
    assert Counter(record.value for record in records) == Counter(b"v%d" % i for i in range(count))
    last: dict[bytes | None, int] = {}
    for record in records:
        assert record.value is not None
        number = int(record.value[1:])
        assert record.headers == (("n", b"%d" % number), ("none", None))
        assert last.get(record.key, -1) < number, "a key's records are out of order"
        last[record.key] = number
