"""The sink with `kclient.delivery=exactly_once` under Spark, on a real Kafka: what runs again is there once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.spark import sessions, worker_logs
from harness.topics import new_topic, produce, read_all

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.xdist_group("spark-real-kafka"),
    pytest.mark.timeout(300),
]

_RECORDS = 60
_ONCE = {"kclient.delivery": "exactly_once"}


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    with sessions.session() as made:
        yield made


def committed(servers: str, topic: str) -> Counter[bytes]:
    records = read_all(servers, topic, isolation_level="read_committed")
    return Counter(record.value or b"" for record in records)


def expected(times: int = 1) -> Counter[bytes]:
    return Counter({b"v%d" % number: times for number in range(_RECORDS)})


@pytest.fixture
def source(real_servers: str) -> str:
    topic = new_topic(real_servers, 2)
    produce(real_servers, topic, _RECORDS)
    return topic


def stream(spark: Any, servers: str, source: str) -> Any:
    reader = spark.readStream.format("kclient").option("kafka.bootstrap.servers", servers)
    return reader.option("subscribe", source).option("startingOffsets", "earliest").load()


def run(writer: Any, checkpoint: Path) -> None:
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    assert query.awaitTermination(200)


def forget_last_commit(checkpoint: Path) -> None:
    """Make the checkpoint one of a query that was killed before it took note of its last micro-batch."""
    last = max(int(file.name) for file in (checkpoint / "commits").iterdir() if file.name.isdecimal())
    (checkpoint / "commits" / str(last)).unlink()
    (checkpoint / "commits" / f".{last}.crc").unlink(missing_ok=True)


@pytest.mark.old_spark
@pytest.mark.parametrize(("delivery", "times"), [("exactly_once", 1), ("at_least_once", 2)])
def test_a_micro_batch_that_runs_again_is_there_once_or_at_least_once(
    spark: Any, real_servers: str, source: str, tmp_path: Path, delivery: str, times: int
) -> None:
    sink = new_topic(real_servers, 3)
    for _ in range(2):
        writer = stream(spark, real_servers, source).select("value").writeStream.format("kclient")
        writer = writer.option("kafka.bootstrap.servers", real_servers).option("topic", sink)
        run(writer.option("kclient.delivery", delivery), tmp_path)
        if committed(real_servers, sink) == expected():
            forget_last_commit(tmp_path)
    assert committed(real_servers, sink) == expected(times)


def test_a_replay_whose_partitions_are_others_is_refused(
    spark: Any, real_servers: str, source: str, tmp_path: Path
) -> None:
    sink = new_topic(real_servers, 1)

    def write(partitions: int) -> None:
        frame = stream(spark, real_servers, source).select("value").repartition(partitions)
        writer = frame.writeStream.format("kclient").option("kafka.bootstrap.servers", real_servers)
        run(writer.option("topic", sink).options(**_ONCE), tmp_path)

    write(5)
    forget_last_commit(tmp_path)
    with pytest.raises(Exception, match="same rows in the same partitions"):
        write(3)
    write(5)
    assert committed(real_servers, sink) == expected()


@pytest.mark.old_spark
def test_a_task_that_fails_after_some_rows_and_runs_again_writes_them_once(
    spark: Any, real_servers: str
) -> None:
    from pyspark import TaskContext
    from pyspark.sql.functions import udf

    # Rows reach the sink in Arrow batches of this size: those before the failure are in its transaction.
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "5")
    sink = new_topic(real_servers, 2)

    def fragile(number: int) -> str:
        context = TaskContext.get()
        assert context is not None
        if context.attemptNumber() == 0 and number % 30 == 25:
            raise ZeroDivisionError
        return f"v{number}"

    try:
        frame = spark.range(0, _RECORDS, 1, 2).select(udf(fragile, useArrow=False)("id").alias("value"))
        writer = frame.write.format("kclient").mode("append").option("topic", sink)
        writer.option("kafka.bootstrap.servers", real_servers).options(**_ONCE).save()
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    assert committed(real_servers, sink) == expected()


def test_a_batch_write_is_known_again_by_its_id_and_number_alone(spark: Any, real_servers: str) -> None:
    sink = new_topic(real_servers, 2)
    name = f"write-{sink}"

    def write(**options: str) -> None:
        frame = spark.range(0, _RECORDS, 1, 2).selectExpr("concat('v', id) AS value")
        writer = frame.write.format("kclient").mode("append").option("topic", sink).options(**_ONCE)
        writer.option("kafka.bootstrap.servers", real_servers).options(**options).save()

    for _ in range(2):
        write(**{"kclient.write.id": name})
    assert committed(real_servers, sink) == expected()
    for _ in range(2):
        write(**{"kclient.write.id": name, "kclient.write.epoch": "1"})
    assert committed(real_servers, sink) == expected(2)
    for _ in range(2):
        write()
    assert committed(real_servers, sink) == expected(4)


def test_a_micro_batch_of_foreach_batch_that_runs_again_is_there_once(
    spark: Any, real_servers: str, source: str, tmp_path: Path
) -> None:
    from kclient.spark import batch_writer

    sink = new_topic(real_servers, 2)
    options = {"kafka.bootstrap.servers": real_servers, "topic": sink, "kclient.write.id": f"to-{sink}"}
    write = batch_writer(**options, **_ONCE)
    for _ in range(2):
        run(stream(spark, real_servers, source).select("value").writeStream.foreachBatch(write), tmp_path)
        forget_last_commit(tmp_path)
    assert committed(real_servers, sink) == expected()


def test_the_report_names_partitions_that_were_written_already(spark: Any, real_servers: str) -> None:
    worker_logs.need(spark)
    spark.conf.set("spark.sql.pyspark.worker.logging.enabled", "true")
    sink = new_topic(real_servers, 1)
    try:
        for _ in range(2):
            frame = spark.range(0, 4, 1, 2).selectExpr("concat('v', id) AS value")
            writer = frame.write.format("kclient").mode("append").option("topic", sink).options(**_ONCE)
            writer = writer.option("kclient.write.id", f"reported-{sink}")
            writer.option("kafka.bootstrap.servers", real_servers).save()

        def already(reports: list[dict[str, Any]]) -> list[dict[str, Any]]:
            return [each for each in reports if "alreadyWritten" in each]

        [report] = already(worker_logs.reports(spark, already))
    finally:
        spark.conf.unset("spark.sql.pyspark.worker.logging.enabled")
    nothing = {"records": 0, "topics": {}, "duplicatesPossible": False, "duplicatesAtMost": 0}
    assert report == {"alreadyWritten": [0, 1], **nothing}
