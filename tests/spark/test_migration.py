"""Jobs that were written for Spark's own connector: what they find to be different, and what is said of it."""

from __future__ import annotations

import logging
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from harness.spark import connector, sessions
from kclient.broker import EmbeddedKafka
from kclient.producer import KafkaProducer

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.spark,
    pytest.mark.xdist_group("spark-side-by-side"),
    pytest.mark.timeout(300),
]


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    sessions.need()
    settings = connector.settings() if connector.missing() is None else {}
    with sessions.session(settings, {"spark.sql.session.timeZone": "America/New_York"}) as made:
        yield made


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with EmbeddedKafka() as kafka:
        with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
            for number in range(20):
                producer.send("in", b"v%d" % number)
        yield kafka.bootstrap_servers


def shared(servers: str, **more: str) -> dict[str, str]:
    """One set of options for a job's source and its sink, with settings of either side and mistakes."""
    return {
        "kafka.bootstrap.servers": servers,
        "subscribe": "in",
        "startingOffsets": "earliest",
        "topic": "out",
        "kafka.linger.ms": "5",
        "kafka.fetch.min.bytes": "1",
        "kafka.max.poll.records": "7",
        "kafka.client.rack": "a",
        "kafka.fetch.min.bites": "1",
        "startingOfset": "latest",
        "path": "x",
        **more,
    }


def told_to(file: Path) -> Any:
    """The data source under another name, which every process of Spark's makes log into `file`."""
    from kclient.spark.data_source import KafkaDataSource

    def listen() -> None:
        logger = logging.getLogger("kclient.spark.remarks")
        if not any(isinstance(each, logging.FileHandler) for each in logger.handlers):
            logger.addHandler(logging.FileHandler(file))

    class Told(KafkaDataSource):
        """Made in every process that Spark plans in."""

        @classmethod
        def name(cls) -> str:
            return "told"

        def reader(self, schema: Any) -> Any:
            listen()
            return KafkaDataSource.reader(self, schema)

        def streamReader(self, schema: Any) -> Any:
            listen()
            return KafkaDataSource.streamReader(self, schema)

        def writer(self, schema: Any, overwrite: bool) -> Any:
            listen()
            return KafkaDataSource.writer(self, schema, overwrite)

        def streamWriter(self, schema: Any, overwrite: bool) -> Any:
            listen()
            return KafkaDataSource.streamWriter(self, schema, overwrite)

    Told.__module__ = "__main__"  # or workers would look for this file
    return Told


@pytest.mark.old_spark
def test_one_set_of_options_serves_source_and_sink_and_each_mistake_is_told_once_a_side(
    spark: Any, servers: str, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    spark.dataSource.register(told_to(log))
    options = shared(servers, **{"kclient.trigger": "processing", "maxOffsetsPerTrigger": "8"})
    query = (
        spark.readStream.format("told")
        .options(**options)
        .load()
        .select("value")
        .writeStream.format("told")
        .options(**options)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    try:
        query.processAllAvailable()
        batches = len(query.recentProgress)
    finally:
        query.stop()
    assert batches >= 3
    said = Counter(log.read_text().splitlines())
    # What is unknown is unknown to both sides, in the same words.
    unknown = ("path, which", "'kafka.fetch.min.bytes'", "'startingOffsets'")
    assert {line: 2 if any(part in line for part in unknown) else 1 for line in said} == said
    assert said.total() == len(said) + len(unknown)
    for part in (
        "kafka.linger.ms is a setting of the producer",
        "kafka.client.rack are settings of the consumer",
    ):
        assert sum(part in line for line in said) == 1, said
    read = spark.read.format("kclient").options(**{**options, "subscribe": "out"}).load()
    assert read.count() == 20


def local_times(spark: Any) -> Any:
    """A time in March that clocks left out in New York, one in November that there was twice, and the cast of both."""
    return spark.sql(
        "SELECT CAST(CAST(time AS TIMESTAMP) AS STRING) AS value, time AS timestamp FROM VALUES "
        "(timestamp_ntz'2024-03-10 02:30:00'), (timestamp_ntz'2024-11-03 01:30:00'), (NULL) AS t(time)"
    )


def written(spark: Any, servers: str, topic: str) -> list[tuple[str, datetime]]:
    found = spark.read.format("kclient").option("kafka.bootstrap.servers", servers)
    rows = (
        found.option("subscribe", topic)
        .load()
        .selectExpr("CAST(value AS STRING) AS v", "CAST(timestamp AS STRING) AS t")
    )
    return [(row.v, row.t) for row in rows.collect()]


@pytest.mark.old_spark
def test_local_times_are_the_instants_of_sparks_cast_in_a_batch_and_in_a_stream(
    spark: Any, servers: str, tmp_path: Path
) -> None:
    frame = local_times(spark).where("timestamp IS NOT NULL")
    options = {"kafka.bootstrap.servers": servers}
    frame.write.format("kclient").mode("append").options(**options, topic="times").save()
    frame.coalesce(1).write.parquet(str(tmp_path / "times"))
    stream = (
        spark.readStream.schema(frame.schema).parquet(str(tmp_path / "times")).writeStream.format("kclient")
    )
    stream = stream.options(**options, topic="times-of-a-stream").option(
        "checkpointLocation", str(tmp_path / "c")
    )
    assert stream.trigger(availableNow=True).start().awaitTermination(120)
    for topic in ("times", "times-of-a-stream"):
        found = written(spark, servers, topic)
        assert len(found) == 2
        assert all(value == time for value, time in found), found


@pytest.mark.old_spark
def test_a_column_timestamp_is_left_out_where_it_is_to_be_ignored_as_by_sparks_own_connector(
    spark: Any, servers: str
) -> None:
    kinds = ("kafka", "kclient") if connector.missing() is None else ("kclient",)
    for kind in kinds:
        for frame in (local_times(spark), spark.sql("SELECT 'v' AS value, 5 AS timestamp")):
            writer = frame.write.format(kind).mode("append").option("kafka.bootstrap.servers", servers)
            writer.options(**{"topic": f"now-{kind}", "kclient.sink.timestamp": "ignore"}).save()
        times = [time for _, time in written(spark, servers, f"now-{kind}")]
        assert len(times) == 4
        assert min(times) > "2025"


def test_a_table_has_no_options_and_says_so_with_the_view_that_has(spark: Any, servers: str) -> None:
    options = f"OPTIONS (`kafka.bootstrap.servers` '{servers}', subscribe 'in')"
    view = "CREATE TEMPORARY VIEW name USING kclient OPTIONS"
    with pytest.raises(Exception, match="PYTHON_DATA_SOURCE_ERROR") as caught:
        spark.sql(f"CREATE TABLE without_columns USING kclient {options}")
    assert view in sessions.said(caught.value)
    spark.sql(f"CREATE TABLE with_columns (key BINARY, value BINARY) USING kclient {options}")
    try:
        for statement in (
            "SELECT * FROM with_columns",
            "INSERT INTO with_columns SELECT binary('k'), binary('v')",
        ):
            with pytest.raises(Exception, match="PYTHON_DATA_SOURCE_ERROR") as caught:
                spark.sql(statement).collect()
            assert view in sessions.said(caught.value)
    finally:
        spark.sql("DROP TABLE with_columns")
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW records USING kclient {options}")
    assert spark.sql("SELECT * FROM records").count() == 20


def test_a_view_with_the_columns_that_are_written_takes_them_by_name_and_in_their_order(
    spark: Any, servers: str
) -> None:
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW sink (key STRING, value STRING) USING kclient "
        f"OPTIONS (`kafka.bootstrap.servers` '{servers}', topic 'inserted')"
    )
    spark.sql("INSERT INTO sink SELECT 'k1', 'v1'")
    spark.sql("INSERT INTO sink BY NAME SELECT 'v2' AS value, 'k2' AS key")
    spark.sql("INSERT INTO sink (value, key) SELECT 'v3', 'k3'")
    found = spark.read.format("kclient").options(
        **{"kafka.bootstrap.servers": servers, "subscribe": "inserted"}
    )
    rows = found.load().selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)")
    assert sessions.rows(rows) == {(f"k{number}", f"v{number}"): 1 for number in (1, 2, 3)}


def test_a_view_takes_fewer_columns_by_name_and_nulls_for_the_others(spark: Any, servers: str) -> None:
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW all_columns USING kclient "
        f"OPTIONS (`kafka.bootstrap.servers` '{servers}', topic 'fewer')"
    )
    by_name = "INSERT INTO all_columns BY NAME SELECT binary('v1') AS value"
    if sessions.VERSION < (4, 1):
        with pytest.raises(Exception, match="Cannot find data for the output column `key`"):
            spark.sql(by_name)
        return
    spark.sql(by_name)
    spark.sql("INSERT INTO all_columns (value) SELECT binary('v2')")
    assert sorted(value for value, _ in written(spark, servers, "fewer")) == ["v1", "v2"]


def test_the_version_of_pyspark_is_the_reports_where_none_is_given(
    capsys: pytest.CaptureFixture[str],
) -> None:
    import pyspark

    from kclient.spark import migrate_report

    report = migrate_report({"kafka.bootstrap.servers": "b:1", "subscribe": "t"}, file=sys.stdout)
    assert report.pyspark == pyspark.__version__
    assert pyspark.__version__ in capsys.readouterr().out
