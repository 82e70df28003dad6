"""What kclient is for, as scenarios that run alike on the embedded broker and on a real Apache Kafka."""

from __future__ import annotations

import threading
import time
import uuid
from collections import Counter

from helpers import wait_until
from kclient.admin import KafkaAdminClient, NewTopic, OffsetSpec
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import ConsumerRecord, KafkaConsumer
from kclient.errors import RecordTooLargeError
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


def look_up_while_a_fetch_waits(servers: str) -> None:
    """Ask for offsets, positions and topics while the broker keeps a fetch for longer than any question may take."""
    here, elsewhere = (TopicPartition(new_topic(servers, 1), 0) for _ in range(2))
    patience = {"fetch.max.wait.ms": 300_000, "request.timeout.ms": 600_000, "default.api.timeout.ms": 30_000}
    with KafkaConsumer({"bootstrap.servers": servers, **patience}) as consumer:
        consumer.assign([here])
        assert consumer.end_offsets([here]) == {here: 0}  # beside the lookup of the position
        consumer.poll(0)
        assert consumer.position(here) == 0
        consumer.poll(100)
        assert consumer.beginning_offsets([here]) == consumer.end_offsets([here]) == {here: 0}
        assert consumer.offsets_for_times({here: 0}) == {here: None}
        consumer.seek_to_end()
        assert consumer.position(here) == 0
        assert len(consumer.partitions_for(elsewhere.topic)) == 1
        assert elsewhere.topic in consumer.list_topics()
        assert consumer.end_offsets([elsewhere]) == {elsewhere: 0}
        consumer.assign([elsewhere])
        assert consumer.position(elsewhere) == 0


def read_beside_a_record_that_is_too_large(servers: str) -> None:
    """Read three partitions, one of which has a record that no answer may bring, and then go past that."""
    topic = new_topic(servers, 3, max_message_bytes="8000000")
    with KafkaProducer(
        {"bootstrap.servers": servers, "max.request.size": 8_000_000, "batch.size": 0, "linger.ms": 0}
    ) as producer:
        for number in range(12):
            producer.send(
                topic, b"%d" % number + bytes(3_000_000 if number == 4 else 10), partition=number % 3
            )
    too_large = TopicPartition(topic, 1)
    limits = {"fetch.max.bytes": 100_000, "kclient.receive.max.bytes": 2_000_000}
    with KafkaConsumer({"bootstrap.servers": servers, **limits}) as consumer:
        consumer.assign([TopicPartition(topic, number) for number in range(3)])
        consumer.seek_to_beginning()
        seen: list[int] = []
        errors: list[RecordTooLargeError] = []
        deadline = time.monotonic() + DEADLINE_S
        while len(seen) < 11:
            assert time.monotonic() < deadline, f"{seen} and {errors} came"
            try:
                seen += [int((record.value or b"").rstrip(bytes(1))) for record in consumer.poll(200)]
            except RecordTooLargeError as error:
                errors.append(error)
                if (
                    len(seen) == 9
                ):  # all that there is beside it; it is raised again until something is done about it
                    consumer.seek(too_large, 2)
        assert sorted(seen) == [0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11]
    assert errors
    for error in errors:
        assert error.sizes.keys() == {too_large}
        assert error.sizes[too_large] > 3_000_000
        for part in (f"{too_large}", "offset 1", str(error.sizes[too_large]), "kclient.receive.max.bytes"):
            assert part in str(error)


class Member(threading.Thread):
    """One consumer of a group that reads until told to stop, committing what it read."""

    def __init__(self, servers: str, topic: str, group: str, **settings: object) -> None:
        super().__init__(daemon=True)
        self.records: list[ConsumerRecord[bytes, bytes]] = []
        self.assignment: set[TopicPartition] = set()
        self.error: BaseException | None = None
        self._topic = topic
        self._stopping = threading.Event()
        self._settings = {
            "bootstrap.servers": servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 300,
            **settings,
        }
        self.start()

    def run(self) -> None:
        try:
            with KafkaConsumer(self._settings) as consumer:
                consumer.subscribe([self._topic])
                idle = False
                # The last poll finds nothing, so that everything there was has been read.
                while not (idle and self._stopping.is_set()):
                    records = consumer.poll(100)
                    idle = not records
                    self.records.extend(records)
                    self.assignment = set(consumer.assignment())
            self.assignment = set()
        except BaseException as error:
            self.error = error

    def stop(self) -> None:
        """Leave the group cleanly."""
        self._stopping.set()
        self.join(DEADLINE_S)
        assert not self.is_alive(), "a consumer did not close in time"
        if self.error is not None:
            raise self.error
