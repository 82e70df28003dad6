"""The classes that Spark drives, without Spark's JVM."""

from __future__ import annotations

import logging
import pickle
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import Row, datasource
from pyspark.sql.types import (
    BinaryType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from kclient.common.topic_partition import TopicPartition
from kclient.errors import ConfigError
from kclient.spark import sink
from kclient.spark.batch_reader import KafkaBatchReader
from kclient.spark.data_source import KafkaDataSource
from kclient.spark.delivery import Written
from kclient.spark.option_names import Use
from kclient.spark.ranges import OffsetRange
from kclient.spark.schema import HEADERS_TYPE, output_columns, source_schema
from kclient.spark.sink import RowStreamWriter
from kclient.spark.sink_columns import sink_columns
from kclient.spark.sink_options import parse_sink
from kclient.spark.write_report import WriteReport

T0 = TopicPartition("t", 0)


def source(**options: str) -> Any:
    # As Spark makes them: names in any case find their values, and are handed out in lower case.
    given = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t", **options}
    return KafkaDataSource(datasource.CaseInsensitiveDict(given))


def schema(ddl: str) -> StructType:
    kinds = {"binary", "bigint", "string", "int", "timestamp"}
    fields = []
    for part in ddl.split(", "):
        name, kind, *rest = part.split(" ")
        assert kind in kinds
        fields.append(
            {"name": name, "type": {"bigint": "long", "int": "integer"}.get(kind, kind), "nullable": not rest}
        )
    return StructType.fromJson({"type": "struct", "fields": [{**field, "metadata": {}} for field in fields]})


def test_the_schema_follows_include_headers() -> None:
    assert source().schema() == source_schema(False)
    assert source(includeHeaders="true").schema() == source_schema(True)
    assert KafkaDataSource.name() == "kclient"


def test_everything_that_travels_can_be_pickled() -> None:
    made = source(maxOffsetsPerTrigger="5", commitGroupId="g", **{"kclient.trigger": "processing"})
    written_to = KafkaDataSource({"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "t"})
    written = schema("value binary")
    for each in (
        made,
        made.reader(made.schema()),
        made.streamReader(made.schema()),
        written_to.writer(schema=written, overwrite=False),
        written_to.streamWriter(schema=written, overwrite=True),
        WriteReport({T0: Written(1, 2, 2)}),
        datasource.InputPartition(OffsetRange(T0, 1, 2)),
    ):
        assert type(pickle.loads(pickle.dumps(each))) is type(each)


def test_only_a_reader_that_is_asked_to_takes_conditions() -> None:
    # Spark refuses any reader with the method unless a setting of the session allows it.
    plain = source().reader(source_schema(False))
    assert type(plain) is KafkaBatchReader
    assert "pushFilters" not in vars(KafkaBatchReader)
    if not hasattr(datasource, "Filter"):
        with pytest.raises(ConfigError, match=r"filterPushdown=true needs PySpark 4\.1"):
            source(filterPushdown="true").reader(source_schema(False))
        return
    pushed = source(filterPushdown="true").reader(source_schema(False))
    assert isinstance(pushed, KafkaBatchReader)
    filters = [datasource.EqualTo(("partition",), 1)]
    assert list(pushed.pushFilters(filters)) == filters


def test_a_users_schema_chooses_columns() -> None:
    chosen = output_columns(schema("TOPIC string, offset bigint x"))
    assert [(each.column, each.name, each.nullable) for each in chosen] == [
        ("topic", "TOPIC", True),
        ("offset", "offset", False),
    ]


@pytest.mark.parametrize(
    ("ddl", "said"),
    [
        ("value string", "column 'value' is binary, not string; cast it"),
        ("values binary", "there is no column 'values'"),
        ("key binary x", "column 'key' can be null"),
    ],
)
def test_a_schema_that_does_not_fit_is_refused(ddl: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        source().reader(schema(ddl))


def test_overwriting_is_refused_in_a_batch() -> None:
    with pytest.raises(ConfigError, match=r"mode\('append'\)"):
        source().writer(schema=schema("value binary"), overwrite=True)


def test_the_log_has_the_reports_of_all_tasks(caplog: pytest.LogCaptureFixture) -> None:
    messages = [WriteReport({T0: Written(2, 0, 1)}), None, WriteReport({T0: Written(3, 2, 4)})]
    written_to = KafkaDataSource({"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "t"})
    with caplog.at_level(logging.INFO, "kclient.spark"):
        written_to.writer(schema("value binary"), False).abort(messages)
        written_to.streamWriter(schema("value binary"), False).commit(messages, 7)
    assert "The write failed after" in caplog.text
    assert '"batchId": 7' in caplog.text


@pytest.fixture
def tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("tokyo")
def test_rows_of_a_stream_keep_local_times_for_the_sessions_zone() -> None:
    columns = StructType([StructField("value", BinaryType()), StructField("timestamp", TimestampNTZType())])
    noon = datetime(2024, 1, 2, 12)  # noqa: DTZ001
    options = parse_sink({"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "t"}, Use.STREAM_WRITE)
    writer = RowStreamWriter(options, sink_columns(columns, "t"), columns)
    rows = [Row(value=b"1", timestamp=noon), Row(value=b"2", timestamp=None)]
    (batch,) = writer._batches(iter(rows))
    assert batch.to_pylist() == [{"value": b"1", "timestamp": noon}, {"value": b"2", "timestamp": None}]


@pytest.mark.usefixtures("tokyo")
def test_rows_of_a_stream_become_columns_with_times_that_are_meant() -> None:
    columns = StructType(
        [
            StructField("unused", MapType(StringType(), StringType())),
            StructField("timestamp", TimestampType()),
            StructField("headers", HEADERS_TYPE),
            StructField("value", BinaryType()),
        ]
    )
    # As PySpark 4.0 hands them over: local times without a zone.
    noon = datetime(2024, 1, 2, 12, 0, 0, 5)  # noqa: DTZ001
    header = Row(key="h", value=b"x")
    rows = [
        Row(unused={}, timestamp=noon, headers=[header], value=b"1"),
        Row(unused=None, timestamp=None, headers=None, value=None),
    ]
    options = parse_sink({"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "t"}, Use.STREAM_WRITE)
    writer = RowStreamWriter(options, sink_columns(columns, "t"), columns)
    (batch,) = writer._batches(iter(rows))
    assert batch.to_pylist() == [
        {
            "value": b"1",
            "headers": [{"key": "h", "value": b"x"}],
            "timestamp": datetime(2024, 1, 2, 3, 0, 0, 5, tzinfo=UTC),
        },
        {"value": None, "headers": None, "timestamp": None},
    ]


def test_rows_of_a_stream_are_sent_in_batches_that_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sink, "_ROWS", 2)
    options = parse_sink({"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "t"}, Use.STREAM_WRITE)
    columns = schema("value binary")
    writer = RowStreamWriter(options, sink_columns(columns, "t"), columns)
    rows = (Row(value=b"%d" % number) for number in range(5))
    assert [batch.num_rows for batch in writer._batches(rows)] == [2, 2, 1]
