"""Logs with gaps, as only a real Apache Kafka makes them here: transactions, aborted and open ones, and compaction."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.real_kafka.broker import RealKafka
from harness.real_kafka.node import missing
from harness.requirements import skip_if
from harness.spark import sessions
from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient, NewTopic, OffsetSpec
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import KafkaConsumer
from kclient.spark import clients
from kclient.spark.arrow import TYPES
from kclient.spark.batch_planner import plan_batch
from kclient.spark.option_names import Use
from kclient.spark.options import SourceOptions, parse_source
from kclient.spark.output import OutputColumn
from kclient.spark.range_reader import read_range
from kclient.spark.ranges import OffsetRange
from kclient.spark.resolver import OffsetResolver

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.kafka,
    pytest.mark.peers,
    pytest.mark.spark,
    pytest.mark.xdist_group("spark-real-kafka"),
    pytest.mark.timeout(300),
]

ALL = [OutputColumn(name, name, True) for name in TYPES]
TX, COMPACTED = TopicPartition("tx", 0), TopicPartition("compacted", 0)


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    skip_if(missing())
    confluent_kafka = pytest.importorskip("confluent_kafka")
    cleaner = {"log.cleaner.backoff.ms": "200", "log.retention.check.interval.ms": "200"}
    with RealKafka(settings=cleaner) as kafka:
        servers = kafka.bootstrap_servers
        with KafkaAdminClient(bootstrap_servers=servers) as admin:
            compact = {
                "cleanup.policy": "compact",
                "min.cleanable.dirty.ratio": "0.01",
                "segment.ms": "300",
                "segment.bytes": "1048576",
                "delete.retention.ms": "0",
            }
            admin.create_topics([NewTopic("tx"), NewTopic("compacted", configs=compact)])
        still_open = write_transactions(confluent_kafka, servers)
        write_compacted(confluent_kafka, servers)
        yield servers
        clients.close_all()
        del still_open


def write_transactions(confluent_kafka: Any, servers: str) -> Any:
    """100 committed, 50 aborted, 30 committed, 50 aborted, and 20 that stay open; then 5 of no transaction."""
    # Open until the end of these tests: the broker ends one after a minute otherwise.
    settings = {"bootstrap.servers": servers, "transactional.id": "x", "transaction.timeout.ms": 900_000}
    producer = confluent_kafka.Producer(settings)
    producer.init_transactions(30)
    for kind, count in (
        ("committed", 100),
        ("aborted", 50),
        ("committed", 30),
        ("aborted", 50),
        ("open", 20),
    ):
        producer.begin_transaction()
        for number in range(count):
            producer.produce("tx", f"{kind} {number}".encode())
        producer.flush(30)
        if kind == "committed":
            producer.commit_transaction(30)
        elif kind == "aborted":
            producer.abort_transaction(30)
    plain = confluent_kafka.Producer({"bootstrap.servers": servers})
    for number in range(5):
        plain.produce("tx", b"plain %d" % number)
    plain.flush(30)
    return producer


def write_compacted(confluent_kafka: Any, servers: str) -> None:
    """Few keys, many times, until the cleaner has made gaps; the last records of the cleaned part are gone, too."""
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "linger.ms": 0})
    for turn in range(6):
        for number in range(200):
            value = None if number % 50 == 3 and turn == 5 else b"%d %d" % (turn, number)
            producer.produce("compacted", value, key=b"%d" % (number % 100))
        producer.flush(30)
        time.sleep(0.35)  # the broker's clock closes a segment after segment.ms
    producer.produce("compacted", b"last", key=b"last")
    producer.flush(30)
    wait_until(lambda: len(truth(servers, COMPACTED)) < 600, 60, "compaction")


def truth(
    servers: str, tp: TopicPartition, isolation: str = "read_uncommitted"
) -> Counter[tuple[int, bytes | None]]:
    """The records as a plain consumer reads them."""
    found: Counter[tuple[int, bytes | None]] = Counter()
    with KafkaConsumer({"isolation.level": isolation}, bootstrap_servers=servers) as consumer:
        consumer.assign([tp])
        consumer.seek_to_beginning()
        end = consumer.end_offsets([tp])[tp]
        while consumer.position(tp) < end:
            found.update((record.offset, record.value) for record in consumer.poll(200))
    return found


def source(
    servers: str, tp: TopicPartition, isolation: str = "read_uncommitted", **more: str
) -> SourceOptions:
    given = {
        "kafka.bootstrap.servers": servers,
        "subscribe": tp.topic,
        "kafka.isolation.level": isolation,
        **more,
    }
    return parse_source(given, Use.BATCH_READ)


def rows(options: SourceOptions, ranges: list[OffsetRange]) -> Counter[tuple[int, bytes | None]]:
    return Counter(
        (row["offset"], row["value"])
        for wanted in ranges
        for batch in read_range(options, ALL, wanted)
        for row in batch.to_pylist()
    )


@pytest.mark.parametrize("tasks", ["1", "2", "7", "40"])
@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
@pytest.mark.parametrize("tp", [TX, COMPACTED], ids=str)
def test_a_log_with_gaps_is_read_in_any_number_of_tasks(
    servers: str, tp: TopicPartition, isolation: str, tasks: str
) -> None:
    options = source(servers, tp, isolation, minpartitions=tasks)
    ranges = plan_batch(options, OffsetResolver(options))
    assert len(ranges) == int(tasks)
    assert rows(options, ranges) == truth(servers, tp, isolation)


def test_committed_records_end_where_the_open_transaction_begins(servers: str) -> None:
    committed = truth(servers, TX, "read_committed")
    assert {value.split()[0] for _, value in committed if value} == {b"committed"}
    assert committed.total() == 130
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        last_stable = admin.list_offsets({TX: OffsetSpec.LATEST}, isolation_level="read_committed")[TX].offset
    options = source(servers, TX, "read_committed")
    [wanted] = plan_batch(options, OffsetResolver(options))
    assert (wanted.tp, wanted.start, wanted.end) == (TX, 0, last_stable)
    assert last_stable == 100 + 50 + 30 + 50 + 4


def test_a_range_without_any_record_ends_at_once(servers: str) -> None:
    options = source(servers, TX, "read_committed")
    began = time.monotonic()
    # From the middle of the last aborted transaction to behind its marker, and a marker alone.
    assert rows(options, [OffsetRange(TX, 200, 234), OffsetRange(TX, 100, 101)]) == Counter()
    assert time.monotonic() - began < 20


def test_spark_reads_gaps_in_a_batch_and_in_micro_batches(servers: str, tmp_path: Path) -> None:
    with sessions.session() as spark:
        for tp, isolation in (
            (TX, "read_committed"),
            (TX, "read_uncommitted"),
            (COMPACTED, "read_uncommitted"),
        ):
            options = {
                "kafka.bootstrap.servers": servers,
                "subscribe": tp.topic,
                "startingOffsets": "earliest",
                "kafka.isolation.level": isolation,
                "minPartitions": "4",
            }
            expected = truth(servers, tp, isolation)
            batch = spark.read.format("kclient").options(**options).load().select("offset", "value")
            assert sessions.rows(batch) == expected
            out = tmp_path / f"{tp}-{isolation}"
            limit = {"maxOffsetsPerTrigger": "60"} if sessions.HAS_LIMITS else {}
            stream = spark.readStream.format("kclient").options(**options, **limit).load()
            query = (
                stream.select("offset", "value")
                .writeStream.format("parquet")
                .option("path", str(out / "data"))
                .option("checkpointLocation", str(out / "checkpoint"))
                .trigger(availableNow=True)
                .start()
            )
            assert query.awaitTermination(200)
            assert sessions.rows(spark.read.parquet(str(out / "data"))) == expected
