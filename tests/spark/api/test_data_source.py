"""The classes that Spark drives, without Spark's JVM."""

from __future__ import annotations

import logging
import pickle
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import Row, datasource
from pyspark.sql.types import BinaryType, MapType, StringType, StructField, StructType, TimestampType

from kclient.common.topic_partition import TopicPartition
from kclient.errors import ConfigError
from kclient.spark import KafkaLagListener, sink, stream_reader
from kclient.spark.batch_reader import KafkaBatchReader
from kclient.spark.data_source import KafkaDataSource
from kclient.spark.delivery import Written
from kclient.spark.limits import TriggerLimits
from kclient.spark.option_names import Use
from kclient.spark.options import parse_sink
from kclient.spark.ranges import OffsetRange
from kclient.spark.schema import HEADERS_TYPE, output_columns, source_schema
from kclient.spark.sink import RowStreamWriter
from kclient.spark.sink_columns import sink_columns
from kclient.spark.stream_reader import KafkaStreamReader
from kclient.spark.write_report import WriteReport, report_json

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
    made = source(maxOffsetsPerTrigger="5", commitGroupId="g")
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


def test_a_stream_reader_leaves_its_plans_behind_when_it_is_pickled() -> None:
    reader = source().streamReader(source_schema(False))
    assert reader.initialOffset() == {"kclient": "initial"}
    assert reader._made is not None
    assert pickle.loads(pickle.dumps(reader))._made is None


def test_a_task_without_a_range_reads_nothing() -> None:
    reader = source().reader(source_schema(False))
    assert list(reader.read(datasource.InputPartition(None))) == []
    assert list(reader.read(None)) == []


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


def test_the_default_limit_lets_trigger_once_be_told_apart() -> None:
    limits = pytest.importorskip("pyspark.sql.streaming.datasource", reason="PySpark 4.2 and newer")

    def default(**options: str) -> Any:
        return source(**options).streamReader(source_schema(False)).getDefaultReadLimit()

    assert default() == limits.ReadAllAvailable()
    assert default(maxOffsetsPerTrigger="7") == limits.ReadMaxRows(7)
    assert default(minOffsetsPerTrigger="7") == limits.ReadMaxRows(2**63 - 1)
    assert default(maxBytesPerTrigger="7") == limits.ReadMaxRows(2**63 - 1)
    assert issubclass(KafkaStreamReader, limits.SupportsTriggerAvailableNow)


@pytest.mark.parametrize("name", ["maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxBytesPerTrigger"])
def test_a_spark_that_does_not_tell_its_trigger_needs_to_be_told_it_where_there_are_limits(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def limits(**options: str) -> TriggerLimits:
        return source(**options).streamReader(source_schema(False))._options.limits

    monkeypatch.setattr(stream_reader, "SPARK_HAS_LIMITS", False)
    assert not limits().any
    with pytest.raises(ConfigError, match=r"needs the option kclient\.trigger"):
        limits(**{name: "7"})
    assert limits(**{name: "7", "kclient.trigger": "processing"}).any
    assert not limits(**{name: "7", "kclient.trigger": "availableNow"}).any
    monkeypatch.setattr(stream_reader, "SPARK_HAS_LIMITS", True)
    assert limits(**{name: "7"}).any
    assert limits(**{name: "7", "kclient.trigger": "availableNow"}).any  # which Spark itself says


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


def test_reports_of_all_tasks_become_one_line(caplog: pytest.LogCaptureFixture) -> None:
    messages = [WriteReport({T0: Written(2, 0, 1)}), None, WriteReport({T0: Written(3, 2, 4)})]
    assert report_json(messages, batchId=7) == (
        '{"batchId": 7, "records": 5, "topics": {"t": {"0": {"count": 5, "firstOffset": 0, "lastOffset": 4}}}}'
    )
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


def progress(name: str | None, *sources: tuple[str, str], query_id: uuid.UUID | None = None) -> Any:
    found = [SimpleNamespace(endOffset=end, latestOffset=latest) for end, latest in sources]
    query_id = query_id or uuid.UUID(int=7)
    return SimpleNamespace(progress=SimpleNamespace(name=name, id=query_id, sources=found))


def test_lag_is_the_latest_offset_less_what_was_read() -> None:
    told: list[Any] = []
    listener = KafkaLagListener(lambda *both: told.append(both))
    listener.onQueryProgress(
        progress(
            "q", ('{"t": {"0": 10}}', '{"t": {"0": 15, "1": 4}}'), ('{"u": {"0": 1}}', '{"u": {"0": 1}}')
        )
    )
    behind = {T0: 5, TopicPartition("t", 1): 4, TopicPartition("u", 0): 0}
    assert listener.behind("q") == behind
    assert listener.total_behind("q") == 9
    assert told == [("q", behind)]
    listener.onQueryTerminated(SimpleNamespace(id=uuid.UUID(int=7)))
    assert listener.queries() == []
    assert listener.behind("q") == {}


@pytest.mark.parametrize(
    "offsets", [("17", "18"), ("null", "null"), ('{"kclient": "initial"}', "{}"), ("x", '{"a": 1}')]
)
def test_sources_that_are_not_kafkas_have_no_lag(offsets: tuple[str, str]) -> None:
    listener = KafkaLagListener()
    listener.onQueryProgress(progress(None, offsets))
    assert listener.queries() == []


def test_a_query_without_a_name_goes_by_its_id() -> None:
    listener = KafkaLagListener()
    listener.onQueryProgress(progress(None, ('{"t": {"0": 1}}', '{"t": {"0": 1}}')))
    assert listener.queries() == [str(uuid.UUID(int=7))]
