"""Producers that change their JSON: new fields, fields that go, numbers that become wider, in nested objects too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import pytest

from harness.topics import new_topic
from kclient.errors import ConfigError
from kclient.producer import KafkaProducer
from kclient.spark.pipelines import EtlOptions, EventsOptions

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.spark,
    pytest.mark.xdist_group("spark-evolution"),
    pytest.mark.timeout(300),
]

TIME = "2025-01-01T12:00:00Z"
TIME_MS = 1_735_732_800_000
ITEMS = "items array<struct<sku: string>>"
SCHEMA = f"id string, n int, customer struct<name: string, points: int>, {ITEMS}, time timestamp"
WIDER = (
    f"id string, n bigint, customer struct<name: string, points: double, city: string>, {ITEMS}, time timestamp, "
    "coupon string"
)


def options(servers: str, folder: Path, **given: Any) -> EventsOptions:
    chosen = {
        "bootstrap_servers": servers,
        "topic": "t",
        "schema": SCHEMA,
        "time_column": "time",
        "required": ("id",),
        "checkpoint": str(folder / "checkpoint"),
        "output": str(folder / "output"),
        "dead_letter_topic": "dead",
        "window_topic": "windows",
        "sums": ("n",),
    }
    return EventsOptions(**{**chosen, **given})


def event(**fields: Any) -> dict[str, Any]:
    return {
        "id": "1",
        "n": 1,
        "customer": {"name": "Ann", "points": 2},
        "items": [{"sku": "x"}],
        "time": TIME,
        **fields,
    }


def parsed(spark: Any, made: EventsOptions, *values: str) -> list[Any]:
    from kclient.spark.pipelines.parsing import parse

    frame = spark.createDataFrame(
        [(value.encode(), number, None) for number, value in enumerate(values)],
        "value binary, number int, timestamp timestamp",
    )
    return list(parse(frame, made).orderBy("number").select("event.*", "error").collect())


NEW: dict[str, tuple[dict[str, Any], Any]] = {
    "nothing new": ({}, None),
    "a field": ({"coupon": "X"}, {"coupon": "X"}),
    "numbers as they are": (
        {"big": 12345678901234567890, "rate": 1.5, "no": None},
        {"big": 12345678901234567890, "no": None, "rate": 1.5},
    ),
    "objects as they are": ({"more": {"a": [1, {"b": None}]}}, {"more": {"a": [1, {"b": None}]}}),
    "a field of an object": ({"customer": {"name": "Ann", "city": "Lyon"}}, {"customer": {"city": "Lyon"}}),
    "a field in an array": (
        {"items": [{"sku": "x"}, {"sku": "y", "price": 3}]},
        {"items": [None, {"price": 3}]},
    ),
    "all of it": (
        {"coupon": "X", "customer": {"vip": True}, "items": [{"q": 1}]},
        {"coupon": "X", "customer": {"vip": True}, "items": [{"q": 1}]},
    ),
}


def test_new_fields_are_kept_as_json_wherever_they_are(spark: Any, tmp_path: Path) -> None:
    made = options("broker:9092", tmp_path, new_fields="keep")
    rows = parsed(spark, made, *(json.dumps(event(**fields)) for fields, _ in NEW.values()))
    assert [row.error for row in rows] == [None] * len(NEW)
    found = [None if row._extra is None else json.loads(row._extra) for row in rows]
    assert dict(zip(NEW, found, strict=True)) == {name: extra for name, (_, extra) in NEW.items()}


def test_new_fields_make_a_bad_row_where_they_are_to_be_rejected(spark: Any, tmp_path: Path) -> None:
    made = options("broker:9092", tmp_path, new_fields="reject")
    rows = parsed(spark, made, *(json.dumps(event(**fields)) for fields, _ in NEW.values()))
    assert [row.error for row in rows] == [
        None if extra is None else f"unknown fields: {', '.join(sorted(extra))}" for _, extra in NEW.values()
    ]


def test_new_fields_are_dropped_by_default(spark: Any, tmp_path: Path) -> None:
    (row,) = parsed(spark, options("broker:9092", tmp_path), json.dumps(event(coupon="X")))
    assert row.asDict(recursive=True).keys() == {"id", "n", "customer", "items", "time", "error"}
    assert row.error is None


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"n": 3_000_000_000}, "n is no int"),
        ({"n": 1.5}, "n is no int"),
        ({"n": "many"}, "n is no int"),
        ({"customer": {"name": "Ann", "points": 2.5}}, "customer.points is no int"),
        ({"customer": "Ann"}, "customer is no struct<name:string,points:int>"),
        ({"items": [{"sku": "x"}, 5]}, "items is no array<struct<sku:string>>"),
    ],
)
def test_a_value_that_has_become_wider_makes_a_bad_row_that_says_where(
    spark: Any, tmp_path: Path, fields: dict[str, Any], error: str
) -> None:
    (row,) = parsed(spark, options("broker:9092", tmp_path), json.dumps(event(**fields)))
    assert row.error == error


def send(servers: str, topic: str, *events: dict[str, Any]) -> None:
    with KafkaProducer(bootstrap_servers=servers) as producer:
        for each in events:
            producer.send(topic, json.dumps(each).encode(), timestamp_ms=TIME_MS)


def go_on(spark: Any, made: EventsOptions) -> None:
    from kclient.spark.pipelines.events import start_events
    from kclient.spark.pipelines.source import wait

    wait(spark, start_events(spark, made))


@pytest.mark.soak
@pytest.mark.long
def test_a_stream_goes_on_with_a_wider_schema_and_its_files_are_read_together(
    spark: Any, servers: str, tmp_path: Path
) -> None:
    from kclient.spark.pipelines.output_schema import read_output

    topic = new_topic(servers, 1)
    made = options(servers, tmp_path, topic=topic, dead_letter_topic=f"{topic}.dead", new_fields="keep")
    send(servers, topic, event(), event(id="2", coupon="X"), event(id="3", n=3_000_000_000))
    go_on(spark, made)
    wider = attrs.evolve(made, schema=WIDER)
    # Without a field that is not required, and with all that is new.
    send(
        servers,
        topic,
        {"id": "4", "time": TIME},
        event(id="5", n=2**40, coupon="Y", customer={"points": 2.5, "city": "Lyon"}),
    )
    go_on(spark, wider)

    found = read_output(spark, f"{made.output}/events").orderBy("id").collect()
    assert [
        (row.id, row.n, row.coupon, row.customer and row.customer.points, row._extra) for row in found
    ] == [
        ("1", 1, None, 2.0, None),
        ("2", 1, None, 2.0, '{"coupon":"X"}'),
        ("4", None, None, None, None),
        ("5", 2**40, "Y", 2.5, None),
    ]
    assert {str(row.date) for row in found} == {"2025-01-01"}

    # What was bad in the old schema is good in the new one, once it is sent again.
    from kclient.cli.main import main

    words = [
        "pipeline",
        "replay-dead-letters",
        "--bootstrap-server",
        servers,
        "--topic",
        made.dead_letter_topic,
    ]
    assert main([*words, "--reason", "n is no int", "--delivery", "at_least_once", "--execute"]) == 0
    go_on(spark, wider)
    again = read_output(spark, f"{made.output}/events").where("id = '3'").collect()
    assert [row.n for row in again] == [3_000_000_000]

    with pytest.raises(
        ConfigError, match=r"Column n is bigint in what was written before and string now.*another name"
    ):
        go_on(spark, attrs.evolve(wider, schema=WIDER.replace("n bigint", "n string"), sums=()))


def test_files_with_new_columns_are_merged_by_spark_itself(spark: Any, servers: str, tmp_path: Path) -> None:
    from kclient.spark.pipelines.etl import start_etl
    from kclient.spark.pipelines.output_schema import read_output
    from kclient.spark.pipelines.source import wait

    topic = new_topic(servers, 1)
    made = EtlOptions(
        bootstrap_servers=servers,
        topic=topic,
        schema="id string, customer struct<name: string>, time timestamp",
        time_column="time",
        checkpoint=str(tmp_path / "checkpoint"),
        output=str(tmp_path / "output"),
    )
    send(servers, topic, event())
    wait(spark, [start_etl(spark, made)])
    send(servers, topic, event(id="2", customer={"name": "Bob", "city": "Lyon"}, coupon="X"))
    newer = "id string, customer struct<name: string, city: string>, time timestamp, coupon string"
    wait(spark, [start_etl(spark, attrs.evolve(made, schema=newer))])
    for frame in (
        spark.read.option("mergeSchema", "true").parquet(made.output),
        read_output(spark, made.output),
    ):
        assert [(row.id, row.customer.city, row.coupon) for row in frame.orderBy("id").collect()] == [
            ("1", None, None),
            ("2", "Lyon", "X"),
        ]
