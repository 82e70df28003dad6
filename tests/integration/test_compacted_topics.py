"""Topics with cleanup.policy=compact: a client that reads one from its start finds the last value of each key."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.broker.process import BrokerProcess
from harness.broker.requests import create, fetch, produce
from harness.broker.wire import Wire
from harness.consumer.reader import reader
from harness.topics import end_offsets, new_topic, read_all
from harness.waiting import wait_until
from kclient.admin import AlterConfigOp, ConfigResource, ConfigResourceType, KafkaAdminClient
from kclient.broker.embedded import EmbeddedKafka
from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import KafkaConsumer
from kclient.producer import KafkaProducer
from kclient.record import MemoryRecordsBuilder

LONG_AGO_MS = 1_500_000_000_000

EAGER = {
    "log.cleaner.backoff.ms": 5,
    "log.cleaner.min.cleanable.ratio": 0.01,
    "log.segment.delete.delay.ms": 0,
}
# Batches grow while others wait, and must fit into a segment.
PRODUCER = {"batch.size": 300, "max.request.size": 1000}
SMALL = {"cleanup_policy": "compact", "segment_bytes": "2000"}


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(EAGER, data_dir=tmp_path) as made:
        yield made


def records_on_disk(kafka: EmbeddedKafka, topic: str) -> int:
    return len(read_all(kafka.bootstrap_servers, topic))


def bytes_in(directory: Path) -> float:
    """Bytes of all segments; any number if one is swapped in that moment."""
    try:
        return sum(path.stat().st_size for path in directory.glob("*.log"))
    except FileNotFoundError:
        return float("inf")


def alter(servers: str, topic: str, name: str, value: str) -> None:
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        admin.incremental_alter_configs({resource: [AlterConfigOp(name, value)]})


def test_a_table_is_read_back_while_it_is_written_compacted_and_restarted(kafka: EmbeddedKafka) -> None:
    servers = kafka.bootstrap_servers
    topic = new_topic(servers, 1, **SMALL)
    table: dict[bytes, bytes | None] = {}
    chance = random.Random(7)
    seen: dict[bytes, bytes | None] = {}
    done = threading.Event()

    def follow() -> None:
        with reader(servers, topic) as consumer:
            while not (done.is_set() and consumer.position(TopicPartition(topic, 0)) >= 3000):
                for record in consumer.poll(50):
                    assert record.key is not None
                    seen[record.key] = record.value

    follower = threading.Thread(target=follow)
    follower.start()
    try:
        for part in range(3):
            with KafkaProducer({"bootstrap.servers": servers, **PRODUCER}) as producer:
                sent = []
                for i in range(1000):
                    key = b"k%d" % chance.randrange(50)
                    value = None if chance.random() < 0.1 else b"%d-%d" % (part, i)
                    sent.append(producer.send(topic, value, key=key))
                    table[key] = value
                for future in sent:
                    future.result(30)
            if part == 1:
                kafka.restart()
    finally:
        done.set()
        follower.join(60)
    assert not follower.is_alive()
    expected = {key: value for key, value in table.items() if value is not None}
    wait_until(lambda: records_on_disk(kafka, topic) < 300, what="compaction")
    read = {record.key: record.value for record in read_all(servers, topic)}
    assert {key: value for key, value in read.items() if value is not None} == expected
    assert {key: value for key, value in seen.items() if value is not None} == expected
    assert end_offsets(servers, topic) == {TopicPartition(topic, 0): 3000}
    kafka.restart()
    read = {record.key: record.value for record in read_all(servers, topic)}
    assert {key: value for key, value in read.items() if value is not None} == expected


@pytest.mark.heavy
@pytest.mark.parametrize("seed", range(2))
def test_a_table_outlives_brokers_that_are_killed_while_they_compact(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    settings = {name.replace(".", "_"): str(value) for name, value in EAGER.items()}
    table: dict[bytes, bytes] = {}
    with BrokerProcess(tmp_path, **settings) as broker:
        servers = broker.bootstrap_servers
        topic = new_topic(servers, 1, **SMALL)
        for part in range(3):
            with KafkaProducer({"bootstrap.servers": servers, **PRODUCER}) as producer:
                sent = []
                for i in range(300):
                    key, value = b"k%d" % chance.randrange(30), b"%d-%d" % (part, i)
                    sent.append(producer.send(topic, value, key=key))
                    table[key] = value
                for future in sent:
                    future.result(30)
                # One after the other, so that rounds go on until the end comes.
                for i in range(chance.randrange(40)):
                    producer.send(topic, b"x" * 400, key=b"filler%d" % (i % 3)).result(30)
            broker.kill()
            broker.start()
            read = {record.key: record.value for record in read_all(servers, topic)}
            assert {key: value for key, value in read.items() if not key.startswith(b"filler")} == table
        wait_until(lambda: len(read_all(servers, topic)) < 300, what="compaction")
        left = [path.name for path in (broker.data_dir / f"{topic}-0").iterdir()]
    assert not [name for name in left if name.endswith(".swap")]


def test_tombstones_go_when_their_time_is_over(kafka: EmbeddedKafka) -> None:
    servers = kafka.bootstrap_servers
    topic = new_topic(servers, 1, **SMALL, delete_retention_ms="1")
    with KafkaProducer({"bootstrap.servers": servers, **PRODUCER}) as producer:
        for i in range(50):
            producer.send(topic, b"v" * 50, key=b"gone%d" % i)
            producer.send(topic, None, key=b"gone%d" % i)
        producer.flush()

        def tombstones() -> int:
            producer.send(topic, b"v" * 300, key=b"filler").result(30)  # what makes the log dirty again
            return sum(record.value is None for record in read_all(servers, topic))

        wait_until(lambda: tombstones() == 0, what="the end of all tombstones")


def test_a_topic_is_compacted_from_when_its_policy_says_so(kafka: EmbeddedKafka) -> None:
    servers = kafka.bootstrap_servers
    topic = new_topic(servers, 1, segment_bytes="2000")
    with KafkaProducer({"bootstrap.servers": servers, **PRODUCER}) as producer:
        for i in range(500):
            producer.send(topic, b"%d" % i, key=b"k")
    alter(servers, topic, "cleanup.policy", "compact")
    wait_until(lambda: records_on_disk(kafka, topic) < 100, what="compaction")


def test_the_offsets_of_groups_outlive_the_compaction_of_their_topic(tmp_path: Path) -> None:
    settings = {**EAGER, "offsets.topic.num.partitions": 1}
    with EmbeddedKafka(settings, data_dir=tmp_path) as kafka:
        servers = kafka.bootstrap_servers
        topic = new_topic(servers, 1)
        tp = TopicPartition(topic, 0)
        for group in ("first", "second"):
            with KafkaConsumer({"bootstrap.servers": servers, "group.id": group}) as consumer:
                consumer.assign([tp])
                if group == "first":
                    consumer.commit_sync({tp: OffsetAndMetadata(1, metadata="only once")})
                    alter(servers, "__consumer_offsets", "segment.bytes", "1000")
                else:
                    for i in range(200):
                        consumer.commit_sync({tp: OffsetAndMetadata(i)})
        log = tmp_path / "__consumer_offsets-0"
        wait_until(lambda: bytes_in(log) < 5000, what="compaction")
        kafka.restart()
        with KafkaAdminClient(bootstrap_servers=servers) as admin:
            assert admin.list_consumer_group_offsets("first")[tp].metadata == "only once"
            assert admin.list_consumer_group_offsets("second")[tp].offset == 199


def test_retention_deletes_from_a_compacted_topic_only_if_its_policy_says_delete_too() -> None:
    builder = MemoryRecordsBuilder()
    builder.append(LONG_AGO_MS, b"k", b"v")
    records = builder.close()
    settings = {"log.cleaner.backoff.ms": 1, "log.retention.ms": 1, "log.retention.bytes": 0}
    with EmbeddedKafka(settings) as kafka, Wire(kafka.bootstrap_servers) as wire:
        # In order of their names, in which retention comes to them.
        create(wire, "compact", cleanup_policy="compact")
        create(wire, "compact-delete", cleanup_policy="compact,delete")
        for topic in ("compact", "compact-delete"):
            produce(wire, topic, records)
        wait_until(lambda: fetch(wire, "compact-delete").log_start_offset == 1, what="retention")
        found = fetch(wire, "compact")
        assert (found.log_start_offset, found.high_watermark, len(found.records)) == (0, 1, len(records))


def test_without_the_cleaner_nothing_is_compacted(tmp_path: Path) -> None:
    before = set(threading.enumerate())  # other tests' brokers may have theirs
    with EmbeddedKafka({**EAGER, "log.cleaner.enable": False}, data_dir=tmp_path):
        started = {one.name for one in set(threading.enumerate()) - before}
        assert started
        assert not [name for name in started if name.startswith("log-cleaner")]
