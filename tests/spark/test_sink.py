"""`df.write` and `df.writeStream` with `format("kclient")`, on the embedded broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.spark import sessions, worker_logs
from kclient.admin import KafkaAdminClient, NewTopic
from kclient.broker import EmbeddedKafka
from kclient.producer import KafkaProducer

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.spark,
    pytest.mark.xdist_group("spark-sink"),
    pytest.mark.timeout(300),
]


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with EmbeddedKafka() as kafka:
        with KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("in", num_partitions=2)])
        with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
            for number in range(100):
                producer.send("in", b"%d" % (number % 3), key=b"%d" % number)
        yield kafka.bootstrap_servers


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    # Without reuse every task is a process of its own, as when executors come and go.
    with sessions.session(
        {"spark.python.worker.reuse": "false"}, {"spark.sql.pyspark.worker.logging.enabled": "true"}
    ) as made:
        yield made


@pytest.fixture
def kafka(spark: Any, servers: str) -> Any:
    class Kafka:
        """The format with the broker's address."""

        def read(self, topic: str, **options: str) -> Any:
            reader = spark.read.format("kclient").option("kafka.bootstrap.servers", servers)
            return reader.option("subscribe", topic).options(**options).load()

        def stream(self, topic: str) -> Any:
            reader = spark.readStream.format("kclient").option("kafka.bootstrap.servers", servers)
            return reader.option("subscribe", topic).option("startingOffsets", "earliest").load()

        def write(self, frame: Any, mode: str = "append", **options: str) -> None:
            writer = frame.write.format("kclient").option("kafka.bootstrap.servers", servers)
            writer.mode(mode).options(**options).save()

    return Kafka()


@pytest.mark.old_spark
def test_all_columns_are_written(kafka: Any, spark: Any, servers: str) -> None:
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        admin.create_topics([NewTopic("all", num_partitions=3)])
    frame = spark.sql(
        "SELECT 'k' AS key, binary('v') AS value, 'all' AS topic, 2 AS partition, "
        "timestamp'2024-01-02 03:04:05.678' AS timestamp, "
        "array(named_struct('key', 'h', 'value', binary('x'))) AS headers, 1 AS unused"
    )
    kafka.write(frame)
    row = kafka.read("all", includeHeaders="true").first()
    assert (bytes(row.key), bytes(row.value), row.partition) == (b"k", b"v", 2)
    assert str(row.timestamp) == "2024-01-02 03:04:05.678000"
    assert [(header.key, bytes(header.value)) for header in row.headers] == [("h", b"x")]


def test_the_topic_of_the_option_goes_before_the_column(kafka: Any, spark: Any) -> None:
    kafka.write(spark.sql("SELECT 'v' AS value, 'never' AS topic"), topic="chosen")
    assert kafka.read("chosen").count() == 1


@pytest.mark.old_spark
def test_many_rows_of_many_tasks_arrive_once_each(kafka: Any, spark: Any) -> None:
    frame = spark.range(0, 20_000, 1, 4).selectExpr(
        "CAST(id AS STRING) AS value", "CAST(id AS STRING) AS key"
    )
    kafka.write(frame, topic="many")
    found = kafka.read("many")
    assert (found.count(), found.select("value").distinct().count()) == (20_000, 20_000)


def test_what_was_written_is_reported(kafka: Any, spark: Any) -> None:
    worker_logs.need(spark)
    kafka.write(spark.range(5).selectExpr("CAST(id AS STRING) AS value"), topic="reported")

    def mine(reports: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [each for each in reports if "reported" in each.get("topics", ())]

    [report] = mine(worker_logs.reports(spark, mine))
    assert report == {
        "records": 5,
        "topics": {"reported": {"0": {"count": 5, "firstOffset": 0, "lastOffset": 4}}},
        "duplicatesPossible": False,
        "duplicatesAtMost": 0,
    }


def test_attempts_that_failed_are_reported_with_what_they_have_left(kafka: Any, spark: Any) -> None:
    worker_logs.need(spark)
    from pyspark import TaskContext
    from pyspark.sql.functions import udf

    # Rows reach the sink in Arrow batches of this size.
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "5")

    def fragile(number: int) -> str:
        context = TaskContext.get()
        assert context is not None
        if context.attemptNumber() < 2 and number == 55:
            raise ZeroDivisionError
        return f"v{number}"

    try:
        frame = spark.range(0, 60, 1, 2).select(udf(fragile, useArrow=False)("id").alias("value"))
        # Without a linger every Arrow batch is on its way before the next one comes.
        kafka.write(frame, topic="attempts", **{"kafka.linger.ms": "0"})
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")

    def of(lines: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
        return [each for each in lines if kind in each]

    lines = worker_logs.reports(
        spark, lambda them: of(them, "attempts") and len(of(them, "failedAttempt")) == 2
    )
    [report] = of(lines, "attempts")
    assert report["records"] == 60
    assert report["attempts"] == {"1": 3}
    assert report["duplicatesAtMost"] == 2 * 30
    failed = of(lines, "failedAttempt")
    assert sorted(each["failedAttempt"]["attempt"] for each in failed) == [0, 1]
    there = kafka.read("attempts").count()
    least, most = (sum(each[name] for each in failed) for name in ("acknowledged", "sent"))
    assert 60 + least <= there <= 60 + most <= 60 + report["duplicatesAtMost"]


def test_numbers_of_tasks_come_to_the_driver(kafka: Any, spark: Any, servers: str, tmp_path: Path) -> None:
    from kclient.spark import KafkaTaskMetrics, register

    if sessions.VERSION < (4, 1):
        pytest.skip("PySpark 4.0 does not let a class take the place of the one that it has found")
    metrics = KafkaTaskMetrics(spark)
    register(spark, metrics)
    try:
        stream = kafka.stream("in").select("key", "value").writeStream.format("kclient")
        stream = stream.option("kafka.bootstrap.servers", servers).option("topic", "counted")
        query = stream.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
        assert query.awaitTermination(100)
        read = metrics.read(query.id)
        assert {tp.topic for tp in read} == {"in"}
        assert sum(each.records for each in read.values()) == 100
        assert sum(each.tasks for each in read.values()) == 2
        assert sum(each.bytes for each in read.values()) >= 100 * 2
        written = metrics.written(query.id)
        assert sum(each.records for each in written.values()) == 100
        assert metrics.read() == {}
        assert kafka.read("in").where("value IS NOT NULL").count() == 100
        assert sum(each.records for each in metrics.read().values()) == 100
    finally:
        register(spark)


@pytest.mark.parametrize(
    ("select", "options", "text"),
    [
        ("SELECT 1 AS key", {"topic": "t"}, "A column 'value' is needed"),
        ("SELECT 'v' AS value", {}, "by the option topic, or by a column 'topic'"),
        ("SELECT 1 AS value", {"topic": "t"}, "Column 'value' is int and has to be string or binary"),
        ("SELECT 'v' AS value, '1' AS partition", {"topic": "t"}, "Column 'partition' is string"),
        ("SELECT 'v' AS value, array('x') AS headers", {"topic": "t"}, "Column 'headers' is array<string>"),
        ("SELECT 'v' AS value", {"topic": "t", "kafka.transactional.id": "x"}, "the sink makes those"),
        ("SELECT 'v' AS value", {"topic": "t", "kafka.linger.ms": "x"}, "linger.ms: 'x' is not valid"),
        ("SELECT 'v' AS value", {"topic": "t", "kclient.mode": "x"}, "'kclient.mode' is not an option"),
    ],
)
def test_what_cannot_be_written_is_told_before_anything_runs(
    kafka: Any, spark: Any, select: str, options: dict[str, str], text: str
) -> None:
    writer = spark.sql(select).write.format("kclient").option("kafka.bootstrap.servers", "127.0.0.1:1")
    writer = writer.mode("append").options(**options)
    with pytest.raises(Exception, match="PYTHON_DATA_SOURCE_ERROR") as caught:
        writer.save()
    assert text in sessions.said(caught.value)


def test_overwriting_a_topic_is_refused(kafka: Any, spark: Any) -> None:
    with pytest.raises(Exception, match="appended to"):
        kafka.write(spark.sql("SELECT 'v' AS value"), mode="overwrite", topic="t")


@pytest.mark.old_spark
def test_a_row_without_a_topic_fails_the_write(kafka: Any, spark: Any) -> None:
    with pytest.raises(Exception, match="topic"):
        kafka.write(spark.sql("SELECT 'v' AS value, CAST(NULL AS STRING) AS topic"))


def finish(writer: Any, folder: Path) -> None:
    query = writer.option("checkpointLocation", str(folder)).trigger(availableNow=True).start()
    assert query.awaitTermination(200)


@pytest.mark.old_spark
def test_a_stream_is_copied_from_topic_to_topic(kafka: Any, servers: str, tmp_path: Path) -> None:
    writer = kafka.stream("in").select("key", "value").writeStream.format("kclient")
    finish(writer.option("kafka.bootstrap.servers", servers).option("topic", "copy"), tmp_path)
    columns = ("key", "value")
    assert sessions.rows(kafka.read("copy").select(*columns)) == sessions.rows(
        kafka.read("in").select(*columns)
    )


@pytest.mark.old_spark
def test_output_mode_complete_writes_every_result(kafka: Any, servers: str, tmp_path: Path) -> None:
    counts = (
        kafka.stream("in")
        .groupBy("value")
        .count()
        .selectExpr("value AS key", "CAST(count AS STRING) AS value")
    )
    writer = counts.writeStream.outputMode("complete").format("kclient")
    finish(writer.option("kafka.bootstrap.servers", servers).option("topic", "complete"), tmp_path)
    found = sessions.rows(kafka.read("complete").select("key", "value"))
    assert found == {(b"0", b"34"): 1, (b"1", b"33"): 1, (b"2", b"33"): 1}


@pytest.mark.old_spark
def test_output_mode_update_goes_through_the_batch_writer(kafka: Any, servers: str, tmp_path: Path) -> None:
    from kclient.spark import batch_writer

    counts = (
        kafka.stream("in")
        .groupBy("value")
        .count()
        .selectExpr("value AS key", "CAST(count AS STRING) AS value")
    )
    write = batch_writer(**{"kafka.bootstrap.servers": servers, "topic": "update"})
    finish(counts.writeStream.outputMode("update").foreachBatch(write), tmp_path)
    found = sessions.rows(kafka.read("update").select("key", "value"))
    assert found == {(b"0", b"34"): 1, (b"1", b"33"): 1, (b"2", b"33"): 1}
