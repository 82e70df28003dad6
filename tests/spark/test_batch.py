"""`spark.read.format("kclient")` on the embedded broker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from harness.spark import sessions
from kclient.admin import KafkaAdminClient, NewTopic
from kclient.broker import EmbeddedKafka
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import KafkaConsumer
from kclient.producer import KafkaProducer

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.spark,
    pytest.mark.xdist_group("spark-batch"),
    pytest.mark.timeout(300),
]

COUNT = 300
FIRST_MS = 1_600_000_000_000


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """Topic t: partition 0 has `COUNT` records a second apart, partition 1 ten, partition 2 none."""
    with EmbeddedKafka() as kafka:
        with KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("t", num_partitions=3), NewTopic("empty"), NewTopic("u")])
        with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
            for number in range(COUNT):
                producer.send(
                    "t",
                    b"v%d" % number,
                    key=b"k" if number % 2 else None,
                    partition=0,
                    headers=[("n", b"1"), ("none", None)] if number == 7 else (),
                    timestamp_ms=FIRST_MS + 1000 * number,
                )
            for number in range(10):
                producer.send("t", None, partition=1, timestamp_ms=FIRST_MS + 1000 * number)
            producer.send("u", b"u", timestamp_ms=FIRST_MS)
        with KafkaConsumer(bootstrap_servers=kafka.bootstrap_servers, group_id="g") as consumer:
            consumer.assign([TopicPartition("t", 0)])
            consumer.commit_sync({TopicPartition("t", 0): 290})
        yield kafka.bootstrap_servers


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    with sessions.session(sql={"spark.sql.python.filterPushdown.enabled": "true"}) as made:
        yield made


@pytest.fixture
def read(spark: Any, servers: str) -> Any:
    def load(schema: str | None = None, **options: str) -> Any:
        reader = spark.read.format("kclient").option("kafka.bootstrap.servers", servers)
        if not {"assign", "subscribePattern"} & set(options):
            reader = reader.option("subscribe", "t")
        if schema is not None:
            reader = reader.schema(schema)
        return reader.options(**options).load()

    return load


def offsets(frame: Any) -> dict[int, tuple[int, int]]:
    """Per partition the first offset and the one after the last, of rows that must have no gap and no repeat."""
    found: dict[int, list[int]] = {}
    for row in frame.select("partition", "offset").collect():
        found.setdefault(row[0], []).append(row[1])
    for partition, each in found.items():
        assert sorted(each) == list(range(min(each), min(each) + len(each))), partition
    return {partition: (min(each), max(each) + 1) for partition, each in found.items()}


def test_rows_have_the_columns_of_sparks_own_connector(read: Any) -> None:
    frame = read(includeHeaders="true")
    assert frame.schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,"
        "timestampType:int,headers:array<struct<key:string,value:binary>>>"
    )
    found = {(row.partition, row.offset): row for row in frame.collect()}
    assert len(found) == COUNT + 10
    row = found[0, 7]
    assert (bytes(row.key), bytes(row.value), row.topic, row.timestampType) == (b"k", b"v7", "t", 0)
    assert row.timestamp.replace(tzinfo=UTC) == datetime.fromtimestamp(FIRST_MS / 1000 + 7, UTC)
    assert [(header.key, header.value) for header in row.headers] == [("n", b"1"), ("none", None)]
    assert (found[0, 8].key, found[0, 8].headers) == (None, None)
    assert found[1, 3].value is None
    assert "headers" not in read().columns


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {0: (0, 300), 1: (0, 10)}),
        ({"startingOffsets": '{"t":{"0":290,"1":-2,"2":0}}'}, {0: (290, 300), 1: (0, 10)}),
        (
            {
                "startingOffsets": '{"t":{"0":5,"1":9,"2":-2}}',
                "endingOffsets": '{"t":{"0":8,"1":-1,"2":-1}}',
            },
            {0: (5, 8), 1: (9, 10)},
        ),
        (
            {"startingTimestamp": str(FIRST_MS + 4001), "startingOffsetsByTimestampStrategy": "latest"},
            {0: (5, 300), 1: (5, 10)},
        ),
        ({"endingTimestamp": str(FIRST_MS + 8000)}, {0: (0, 8), 1: (0, 8)}),
        (
            {
                "assign": '{"t":[0,1]}',
                "startingOffsetsByTimestamp": json.dumps({"t": {"0": FIRST_MS + 9000, "1": FIRST_MS}}),
                "endingOffsetsByTimestamp": json.dumps({"t": {"0": FIRST_MS + 20_000, "1": FIRST_MS + 3000}}),
            },
            {0: (9, 20), 1: (0, 3)},
        ),
        ({"startingOffsets": "group:g"}, {0: (290, 300), 1: (0, 10)}),
        ({"assign": '{"t":[1,2]}'}, {1: (0, 10)}),
    ],
)
def test_a_read_begins_and_ends_where_the_options_say(
    read: Any, options: dict[str, str], expected: dict[int, tuple[int, int]]
) -> None:
    assert offsets(read(**options)) == expected


def test_a_pattern_reads_every_topic_that_matches(read: Any) -> None:
    frame = read(subscribePattern="[tu]")
    assert sessions.rows(frame.groupBy("topic").count()) == {("t", COUNT + 10): 1, ("u", 1): 1}


def test_an_empty_topic_has_no_rows(read: Any) -> None:
    assert read(assign='{"empty":[0]}').count() == 0


def test_a_users_schema_reads_no_other_column(read: Any) -> None:
    frame = read("offset bigint, VALUE binary, headers array<struct<key:string,value:binary>>")
    assert frame.columns == ["offset", "VALUE", "headers"]
    assert sessions.rows(frame.select("offset", "VALUE").where("offset = 3 and VALUE is not null")) == {
        (3, b"v3"): 1
    }
    assert frame.where("headers is not null").count() == 1


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ("value string", "column 'value' is binary, not string"),
        ("valeu binary", "there is no column 'valeu'"),
    ],
)
def test_a_schema_that_does_not_fit_is_refused(read: Any, schema: str, text: str) -> None:
    with pytest.raises(Exception, match="schema") as caught:
        read(schema).count()
    assert text in sessions.said(caught.value)


def test_ranges_are_cut_into_more_tasks(read: Any) -> None:
    whole, cut = read(), read(minPartitions="6")
    assert (whole.rdd.getNumPartitions(), cut.rdd.getNumPartitions()) == (2, 6)
    assert read(maxRecordsPerPartition="50").rdd.getNumPartitions() == 7
    assert sessions.rows(cut) == sessions.rows(whole)


@sessions.needs_filters
@pytest.mark.parametrize(
    ("condition", "tasks"),
    [
        ("partition = 1", 1),
        ("topic = 'elsewhere'", 0),
        ("topic in ('t', 'x') and offset >= 10 and offset < 20", 1),
        ("offset = 5 or partition = 1", 2),
        ("timestamp >= '2020-09-13 12:30:00'", 1),
        ("timestamp > '2020-09-13 12:26:45.001' and partition = 1", 1),
        ("value = 'v5'", 2),
    ],
)
def test_conditions_read_less_and_give_the_same_rows(read: Any, condition: str, tasks: int) -> None:
    pushed = read(filterPushdown="true").where(condition)
    assert sessions.rows(pushed) == sessions.rows(read().where(condition))
    # No task at all is one to Spark.
    assert pushed.rdd.getNumPartitions() == max(tasks, 1)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"kafka.bootstrap.servers": "embedded://x"}, "EmbeddedKafka()"),
        ({"kafka.bootstrap.servers": ""}, "kafka.bootstrap.servers is not set"),
        ({"assign": '{"t":[0]}', "subscribe": "t"}, "assign and subscribe are given"),
        ({"startingOffsets": "latest"}, "makes no sense in a batch query"),
        ({"kclient.delivry": "exactly_once"}, "Did you mean 'kclient.delivery'"),
        ({"kafka.enable.auto.commit": "true"}, "kafka.enable.auto.commit cannot be set"),
        ({"startingOffsets": '{"t":{"0":1}}'}, "t-1, t-2 is missing"),
        ({"startingOffsets": '{"t":{"0":1000,"1":0,"2":0}}'}, "1000 of t-0 lies after the end"),
        ({"startingTimestamp": str(FIRST_MS + 10**9)}, "no record of t-0, t-1, t-2 is that late"),
    ],
)
def test_a_wrong_option_is_told_with_its_name(read: Any, options: dict[str, str], text: str) -> None:
    with pytest.raises(Exception, match="PYTHON_DATA_SOURCE_ERROR") as caught:
        read(**options).count()
    assert text in sessions.said(caught.value)


def test_a_topic_that_is_not_there_is_named(read: Any, servers: str) -> None:
    for fail in ("true", "false"):
        options = {"subscribe": "t,away", "failOnDataLoss": fail, "fetchOffset.retryIntervalMs": "1"}
        with pytest.raises(Exception, match=f"There is no topic away on {servers}"):
            read(**options).count()


def test_it_can_be_used_from_sql(spark: Any, servers: str) -> None:
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW kafka_t USING kclient "
        f"OPTIONS (`kafka.bootstrap.servers` '{servers}', subscribe 't')"
    )
    assert spark.sql("SELECT max(offset) FROM kafka_t WHERE partition = 0").first()[0] == COUNT - 1


def test_a_million_rows_come_once_each(spark: Any, servers: str) -> None:
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        admin.create_topics([NewTopic("million", num_partitions=3)])
    with KafkaProducer(bootstrap_servers=servers) as producer:
        for start in range(0, 1_000_000, 10_000):
            values = [b"%d" % number for number in range(start, start + 10_000)]
            producer.send_many("million", values, keys=values)
    reader = spark.read.format("kclient").option("kafka.bootstrap.servers", servers)
    frame = reader.option("subscribe", "million").option("minPartitions", "8").load()
    found = frame.selectExpr(
        "count(*)",
        "count(DISTINCT value)",
        "sum(CAST(CAST(value AS STRING) AS BIGINT))",
        "count_if(key = value)",
    ).first()
    assert tuple(found) == (1_000_000, 1_000_000, 999_999 * 500_000, 1_000_000)
