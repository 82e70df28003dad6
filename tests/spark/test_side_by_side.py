"""The same rows as Spark's own connector, for the same options, on a real Apache Kafka.

The connector has to be of PySpark's version; 4.0.0 is the newest that Maven Central has all of. With another PySpark
these tests are skipped.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.real_kafka.broker import RealKafka
from harness.real_kafka.node import missing
from harness.requirements import skip_if
from harness.spark import connector, sessions
from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient, NewTopic
from kclient.producer import KafkaProducer

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.kafka,
    pytest.mark.old_spark,
    pytest.mark.spark,
    pytest.mark.xdist_group("spark-side-by-side"),
    pytest.mark.timeout(300),
]

FIRST_MS = 1_600_000_000_000
BOTH = ("kafka", "kclient")


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    sessions.need()
    import pyspark

    if pyspark.__version__ != connector.VERSION:
        pytest.skip(f"PySpark is {pyspark.__version__}, the connector {connector.VERSION}")
    skip_if(missing())
    with sessions.session(connector.settings()) as made:
        yield made


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with RealKafka() as kafka:
        servers = kafka.bootstrap_servers
        with KafkaAdminClient(bootstrap_servers=servers) as admin:
            # Or retention would remove records as old as these.
            keep = {"retention.ms": "-1"}
            topics = [
                NewTopic("t", num_partitions=3, configs=keep),
                NewTopic("t2", configs=keep),
                NewTopic("empty"),
            ]
            admin.create_topics(topics)
        with KafkaProducer(bootstrap_servers=servers) as producer:
            for number in range(300):
                producer.send(
                    "t",
                    b"v%d" % number if number % 11 else None,
                    key=b"k%d" % number if number % 7 else None,
                    partition=number % 2,
                    headers=[("h", b"%d" % number), ("h", None)] if number % 5 == 0 else (),
                    timestamp_ms=FIRST_MS + 1000 * number,
                )
            producer.send("t2", "ü".encode(), timestamp_ms=FIRST_MS)
        yield servers


def load(spark: Any, kind: str, servers: str, **options: str) -> Any:
    if not {"assign", "subscribePattern", "subscribe"} & set(options):
        options["subscribe"] = "t"
    return spark.read.format(kind).option("kafka.bootstrap.servers", servers).options(**options).load()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"includeHeaders": "true"},
        {"subscribe": "t,t2"},
        {"subscribe": "empty"},
        {"subscribePattern": "t.?"},
        {"assign": '{"t":[0,2],"t2":[0]}'},
        {"minPartitions": "7"},
        {"maxRecordsPerPartition": "40"},
        {"minPartitions": "9", "maxRecordsPerPartition": "40"},
        {"startingOffsets": '{"t":{"0":10,"1":-2,"2":0}}', "endingOffsets": '{"t":{"0":20,"1":-1,"2":-1}}'},
        {"startingTimestamp": str(FIRST_MS + 100_500), "startingOffsetsByTimestampStrategy": "latest"},
        {"endingTimestamp": str(FIRST_MS + 100_500)},
        {
            "startingOffsetsByTimestamp": json.dumps(
                {"t": {"0": FIRST_MS + 50_000, "1": FIRST_MS, "2": FIRST_MS}}
            ),
            "startingOffsetsByTimestampStrategy": "latest",
            "endingOffsetsByTimestamp": json.dumps({"t": dict.fromkeys("012", FIRST_MS + 200_000)}),
        },
        {
            "startingTimestamp": "1",
            "startingOffsets": "earliest",
            "endingOffsets": "latest",
            "subscribe": "t2",
        },
        {"kafka.isolation.level": "read_committed"},
        # What is ignored there is ignored here: settings of producers, names that nobody knows, a path.
        {"kafka.acks": "nonsense", "kafka.linger.ms": "x", "kafka.key.serializer": "x", "kafka.no.such": "1"},
        {"kafka.max.poll.records": "7", "kafka.group.id": "g", "startingOfset": "latest", "path": "x"},
    ],
    ids=str,
)
def test_the_rows_are_the_same(spark: Any, servers: str, options: dict[str, str]) -> None:
    theirs, ours = (load(spark, kind, servers, **options) for kind in BOTH)
    assert ours.schema == theirs.schema
    assert sessions.rows(ours) == sessions.rows(theirs)


@pytest.mark.parametrize(
    "options",
    [
        {"startingOffsets": "latest"},
        {"endingOffsets": "earliest"},
        {"startingOffsets": '{"t":{"0":10}}'},
        {"startingOffsets": "somewhere"},
        {"startingTimestamp": str(FIRST_MS + 10**9)},
        {"minPartitions": "0"},
        {"minPartitions": "many"},
        {"maxRecordsPerPartition": "0"},
        {"kafka.max.poll.records": "0"},
        {"kafka.fetch.min.bytes": "x"},
        {"failOnDataLoss": "yes"},
        {"assign": "t"},
        {"assign": '{"t":[0]}', "subscribe": "t"},
        {"kafka.auto.offset.reset": "earliest"},
        {"kafka.enable.auto.commit": "true"},
        {"kafka.key.deserializer": "x"},
        {"subscribe": "t-that-is-not-there"},
    ],
    ids=str,
)
def test_both_refuse_the_same(spark: Any, servers: str, options: dict[str, str]) -> None:
    for kind in BOTH:
        with pytest.raises(Exception, match=r"."):
            load(spark, kind, servers, **options).count()


def tasks(spark: Any, kind: str, servers: str, **options: str) -> Counter[int]:
    """The number of tasks with records for each partition of a topic with 150, 150 and no records."""
    frame = load(spark, kind, servers, **options).selectExpr("partition", "spark_partition_id() AS task")
    return Counter(row.partition for row in frame.distinct().collect())


@pytest.mark.parametrize("least", [2, 5, 10])
def test_there_are_at_least_as_many_tasks_as_asked_for_and_no_more_than_there(
    spark: Any, servers: str, least: int
) -> None:
    theirs, ours = (tasks(spark, kind, servers, minPartitions=str(least)) for kind in BOTH)
    assert ours.total() == max(least, 2)
    # There it is about so many, as each partition's share is rounded for itself.
    assert 0 <= theirs.total() - ours.total() <= 1


def test_no_task_has_more_records_than_allowed_also_in_a_batch_without_min_partitions(
    spark: Any, servers: str
) -> None:
    theirs, ours = (tasks(spark, kind, servers, maxRecordsPerPartition="40") for kind in BOTH)
    assert ours == {0: 4, 1: 4}
    assert theirs == {0: 1, 1: 1}, "Spark's own connector keeps to it as well: docs/spark.md says it does not"


def test_a_partition_that_is_not_there_is_an_error_here_and_left_out_there(spark: Any, servers: str) -> None:
    options = {"assign": '{"t":[0,9]}', "fetchOffset.numRetries": "0"}
    assert load(spark, "kafka", servers, **options).count() == 150
    with pytest.raises(Exception, match="There is no partition t-9"):
        load(spark, "kclient", servers, **options).count()


def test_a_time_as_the_end_of_a_stream_is_ignored(spark: Any, servers: str) -> None:
    for kind in BOTH:
        stream = spark.readStream.format(kind).option("kafka.bootstrap.servers", servers)
        stream = stream.option("subscribe", "t2").option("startingOffsets", "earliest")
        query = (
            stream.option("endingTimestamp", "1").load().writeStream.format("memory").queryName(f"end_{kind}")
        )
        query = query.trigger(availableNow=True).start()
        assert query.awaitTermination(100)
        assert spark.table(f"end_{kind}").count() == 1


def test_what_one_writes_the_other_reads(spark: Any, servers: str) -> None:
    frame = spark.sql(
        "SELECT CAST(id AS STRING) AS key, IF(id % 3 = 0, NULL, binary(CAST(id * 2 AS STRING))) AS value, "
        "IF(id % 2 = 0, array(named_struct('key', 'h', 'value', binary('x'))), NULL) AS headers FROM range(500)"
    )
    for kind in BOTH:
        writer = (
            frame.write.format(kind).option("kafka.bootstrap.servers", servers).option("topic", f"by-{kind}")
        )
        writer.option("includeHeaders", "true") if kind == "kafka" else writer
        writer.mode("append").save()
    columns = ("key", "value", "headers")
    theirs, ours = (
        sessions.rows(
            load(spark, other, servers, subscribe=f"by-{kind}", includeHeaders="true").select(*columns)
        )
        for kind, other in zip(BOTH, reversed(BOTH), strict=True)
    )
    assert ours == theirs
    assert ours.total() == 500


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"includeHeaders": "true"},
        {"subscribePattern": "t.?"},
        {"assign": '{"t":[0,2]}'},
        {"minPartitions": "7"},
        {"maxOffsetsPerTrigger": "50"},
        {"minOffsetsPerTrigger": "10", "maxTriggerDelay": "1s"},
        {"startingOffsets": '{"t":{"0":10,"1":-2,"2":-1}}'},
        {"startingTimestamp": str(FIRST_MS + 100_500), "startingOffsetsByTimestampStrategy": "latest"},
    ],
    ids=str,
)
def test_a_streams_rows_are_the_same(
    spark: Any, servers: str, tmp_path: Path, options: dict[str, str]
) -> None:
    found = {}
    for kind in BOTH:
        given = {"kafka.bootstrap.servers": servers, "startingOffsets": "earliest", **options}
        if not {"assign", "subscribePattern"} & set(options):
            given["subscribe"] = "t"
        if kind == "kclient" and any(name.endswith("PerTrigger") for name in options):
            given["kclient.trigger"] = "processing"  # which PySpark 4.0 does not tell
        query = (
            spark.readStream.format(kind)
            .options(**given)
            .load()
            .writeStream.format("memory")
            .queryName(f"by_{kind}")
            .option("checkpointLocation", str(tmp_path / kind))
            .start()
        )
        try:
            query.processAllAvailable()
            ends = [json.loads(each["sources"][0]["endOffset"]) for each in query.recentProgress]
        finally:
            query.stop()
        found[kind] = (sessions.rows(spark.table(f"by_{kind}")), ends[-1])
    assert found["kclient"] == found["kafka"]
    assert found["kafka"][0].total() > 10


def test_a_checkpoint_goes_on_under_the_other_name(spark: Any, servers: str, tmp_path: Path) -> None:
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        admin.create_topics([NewTopic("moving", num_partitions=2)])
    sent = 0

    def run(kind: str) -> None:
        nonlocal sent
        with KafkaProducer(bootstrap_servers=servers) as producer:
            for number in range(sent, sent + 20):
                producer.send("moving", b"%d" % number, partition=number % 2)
        sent += 20
        stream = spark.readStream.format(kind).option("kafka.bootstrap.servers", servers)
        stream = stream.option("subscribe", "moving").option("startingOffsets", "earliest").load()
        query = (
            stream.select("partition", "offset", "value")
            .writeStream.format("parquet")
            .option("path", str(tmp_path / "out"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(100)

    for kind in ("kafka", "kclient", "kclient"):
        run(kind)
    logged = [
        json.loads((tmp_path / "checkpoint" / "offsets" / str(n)).read_text().splitlines()[-1])
        for n in range(3)
    ]
    assert logged == [{"moving": {"0": 10 * n, "1": 10 * n}} for n in (1, 2, 3)]
    found = sessions.rows(spark.read.parquet(str(tmp_path / "out")).select("value"))
    assert found == {(b"%d" % number,): 1 for number in range(sent)}


def test_the_first_records_of_a_topic_that_was_created_again_are_skipped_by_theirs_and_not_by_ours(
    spark: Any, servers: str, tmp_path: Path
) -> None:
    seen = {}
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        admin.create_topics([NewTopic("markers")])
        for kind in BOTH:
            topic = f"again-{kind}"
            options = {"subscribe": topic, "startingOffsets": "earliest", "failOnDataLoss": "false"}
            if kind == "kclient":
                options |= {"commitGroupId": topic, "kclient.marker.topic": "markers"}

            def run(count: int, kind: str = kind, options: dict[str, str] = options) -> None:
                with KafkaProducer(bootstrap_servers=servers) as producer:
                    for number in range(count):
                        producer.send(options["subscribe"], b"%d of %d" % (number, count))
                stream = spark.readStream.format(kind).option("kafka.bootstrap.servers", servers)
                writer = stream.options(**options).load().select("value").writeStream.format("parquet")
                writer = writer.option("path", str(tmp_path / kind)).trigger(availableNow=True)
                query = writer.option("checkpointLocation", str(tmp_path / f"{kind}-checkpoint")).start()
                assert query.awaitTermination(100)

            admin.create_topics([NewTopic(topic)])
            run(10)
            admin.delete_topics([topic])
            wait_until(lambda topic=topic: topic not in admin.list_topics(), 30, "the topic's end")
            admin.create_topics([NewTopic(topic)])
            run(25)
            run(0)  # before PySpark 4.2 the first run ends where the new topic begins
            seen[kind] = sessions.rows(spark.read.parquet(str(tmp_path / kind)))
    old = [(b"%d of 10" % number,) for number in range(10)]
    assert seen["kafka"] == Counter([*old, *((b"%d of 25" % number,) for number in range(10, 25))])
    assert seen["kclient"] == Counter([*old, *((b"%d of 25" % number,) for number in range(25))])
