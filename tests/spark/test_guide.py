"""The programs of Spark's guide to Kafka run after the word kafka is changed to kclient, and have the same results.

In words of our own. Where Spark's own connector is (PySpark 4.0.0) each runs with both; with other versions of PySpark
only with ours.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.spark import connector, sessions
from harness.topics import end_offsets, new_topic
from harness.waiting import wait_until
from kclient.broker import EmbeddedKafka
from kclient.producer import KafkaProducer

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.old_spark,
    pytest.mark.spark,
    pytest.mark.xdist_group("spark-side-by-side"),
    pytest.mark.timeout(300),
]

FORMATS = ("kafka", "kclient") if connector.missing() is None else ("kclient",)
AS_TEXT = ("CAST(key AS STRING)", "CAST(value AS STRING)")
FIRST_MS = 1_600_000_000_000


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    sessions.need()
    with sessions.session(connector.settings() if "kafka" in FORMATS else {}) as made:
        yield made


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with EmbeddedKafka() as kafka:
        with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
            for number in range(6):
                producer.send(
                    f"topic{number % 2 + 1}",
                    b"v%d" % number,
                    key=b"k%d" % number,
                    headers=[("n", b"%d" % number)],
                    timestamp_ms=FIRST_MS + number,
                )
        yield kafka.bootstrap_servers


ROWS = {(f"k{number}", f"v{number}") for number in range(6)}
OF_TOPIC1 = {(f"k{number}", f"v{number}") for number in range(0, 6, 2)}
BATCH_READS: dict[str, tuple[dict[str, str], set[tuple[str, str]]]] = {
    "a topic, from its beginning to its end": ({"subscribe": "topic1"}, OF_TOPIC1),
    "topics, with offsets for each partition": (
        {
            "subscribe": "topic1,topic2",
            "startingOffsets": '{"topic1":{"0":1},"topic2":{"0":-2}}',
            "endingOffsets": '{"topic1":{"0":2},"topic2":{"0":-1}}',
        },
        {("k2", "v2"), ("k1", "v1"), ("k3", "v3"), ("k5", "v5")},
    ),
    "a pattern, between named ends": (
        {"subscribePattern": "topic.*", "startingOffsets": "earliest", "endingOffsets": "latest"},
        ROWS,
    ),
    "partitions": ({"assign": '{"topic1":[0]}'}, OF_TOPIC1),
    "a time for all partitions": (
        {"subscribePattern": "topic.*", "startingTimestamp": str(FIRST_MS + 2)},
        {row for row in ROWS if row[0] > "k1"},
    ),
    "times for each partition": (
        {
            "subscribe": "topic1",
            "startingOffsetsByTimestamp": json.dumps({"topic1": {"0": FIRST_MS + 1}}),
            "endingOffsetsByTimestamp": json.dumps({"topic1": {"0": FIRST_MS + 4}}),
        },
        {("k2", "v2")},
    ),
}


@pytest.mark.parametrize("name", BATCH_READS)
@pytest.mark.parametrize("kind", FORMATS)
def test_a_batch_is_read_from(spark: Any, servers: str, kind: str, name: str) -> None:
    options, expected = BATCH_READS[name]
    df = spark.read.format(kind).option("kafka.bootstrap.servers", servers).options(**options).load()
    assert sessions.rows(df.selectExpr(*AS_TEXT)) == Counter(expected)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_batch_is_written_to_the_topic_of_an_option_or_of_a_column(
    spark: Any, servers: str, kind: str
) -> None:
    df = spark.sql("SELECT 'k' AS key, 'v' AS value UNION ALL SELECT NULL, binary('w')")
    writer = df.selectExpr(*AS_TEXT).write.format(kind).option("kafka.bootstrap.servers", servers)
    # The guide leaves the mode to its default, which Spark refuses for data sources in Python.
    writer.option("topic", f"batch-by-{kind}").mode("append").save()
    named = df.selectExpr(f"'batch-by-{kind}-named' AS topic", *AS_TEXT).write.format(kind)
    named.option("kafka.bootstrap.servers", servers).mode("append").save()
    for topic in (f"batch-by-{kind}", f"batch-by-{kind}-named"):
        found = spark.read.format("kclient").option("kafka.bootstrap.servers", servers)
        found = found.option("subscribe", topic).load().selectExpr(*AS_TEXT)
        assert sessions.rows(found) == {("k", "v"): 1, (None, "w"): 1}


def test_the_default_mode_of_a_batch_write_is_refused_by_spark_and_told_with_the_one_to_use(
    spark: Any,
) -> None:
    writer = spark.sql("SELECT 'v' AS value").write.format("kclient").option("kafka.bootstrap.servers", "b:1")
    with pytest.raises(Exception, match=r'"ErrorIfExists" mode\. Please use either the "Append"'):
        writer.option("topic", "t").save()


@pytest.mark.parametrize("kind", FORMATS)
def test_a_topic_is_copied_from_its_end_on_to_the_topic_of_an_option(
    spark: Any, servers: str, kind: str, tmp_path: Path
) -> None:
    source, sink = f"source-{kind}", new_topic(servers, 1)
    with KafkaProducer(bootstrap_servers=servers) as producer:
        producer.send(source, b"before").result(10_000)
        df = (
            spark.readStream.format(kind)
            .option("kafka.bootstrap.servers", servers)
            .option("subscribe", source)
            .load()
        )
        query = (
            df.selectExpr(*AS_TEXT)
            .writeStream.format(kind)
            .option("kafka.bootstrap.servers", servers)
            .option("topic", sink)
            .option("checkpointLocation", str(tmp_path))
            .start()
        )
        try:
            wait_until(lambda: any((tmp_path / "offsets").glob("0")), 60, "the first micro-batch")
            producer.send(source, b"after", key=b"k").result(10_000)
            # Not processAllAvailable: a look for data that began before this record came may end it.
            wait_until(lambda: any(end_offsets(servers, sink).values()), 60, "the copy")
        finally:
            query.stop()
    found = spark.read.format("kclient").option("kafka.bootstrap.servers", servers)
    found = found.option("subscribe", sink).load().selectExpr(*AS_TEXT)
    assert sessions.rows(found) == {("k", "after"): 1}


@pytest.mark.parametrize("kind", FORMATS)
def test_topics_with_headers_are_copied_to_the_topics_of_a_column(
    spark: Any, servers: str, kind: str, tmp_path: Path
) -> None:
    df = (
        spark.readStream.format(kind)
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", "topic1,topic2")
        .option("includeHeaders", "true")
        .option("startingOffsets", "earliest")
        .load()
    )
    query = (
        df.selectExpr(f"concat(topic, '-by-{kind}') AS topic", *AS_TEXT, "headers")
        .writeStream.format(kind)
        .option("kafka.bootstrap.servers", servers)
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    found = spark.read.format("kclient").option("kafka.bootstrap.servers", servers)
    found = found.option("subscribePattern", f"topic.-by-{kind}").option("includeHeaders", "true").load()
    assert {
        (row.key.decode(), row.value.decode(), row.headers[0].value.decode()) for row in found.collect()
    } == {(key, value, key[1:]) for key, value in ROWS}
