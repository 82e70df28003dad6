"""The columns that become records: which of a query's are taken, and which are refused before anything runs."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from kclient.errors import ConfigError
from kclient.spark.output import SinkColumns
from kclient.spark.schema import HEADERS_TYPE
from kclient.spark.sink_columns import sink_columns

TEXT, BYTES = StringType(), BinaryType()


def schema(**columns: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


def test_all_that_a_record_has_is_taken_and_nothing_else() -> None:
    every = schema(
        extra=MapType(TEXT, TEXT),
        timestamp=TimestampType(),
        headers=HEADERS_TYPE,
        partition=IntegerType(),
        topic=TEXT,
        value=BYTES,
        key=TEXT,
        VALUE=LongType(),
    )
    names = ("key", "value", "topic", "partition", "headers", "timestamp")
    assert sink_columns(every, None) == SinkColumns(names, None)


def test_the_option_topic_wins_over_the_column_which_may_then_be_anything() -> None:
    assert sink_columns(schema(topic=LongType(), value=TEXT), "t") == SinkColumns(("value",), "t")


def test_records_need_a_place_to_go() -> None:
    with pytest.raises(ConfigError, match="by the option topic, or by a column 'topic'") as refused:
        sink_columns(schema(value=BYTES), None)
    assert refused.value.name == "topic"


@pytest.mark.parametrize(
    ("columns", "said"), [({}, "there is none at all"), ({"key": TEXT, "Value": TEXT}, "there is key, Value")]
)
def test_a_value_is_needed_and_the_error_lists_what_there_is(columns: dict[str, DataType], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as refused:
        sink_columns(schema(**columns), "t")
    assert refused.value.name == "value"


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("key", LongType(), "'key' is bigint and has to be string or binary"),
        ("value", IntegerType(), "'value' is int and has to be string or binary"),
        ("topic", BYTES, "'topic' is binary and has to be string"),
        ("partition", LongType(), "'partition' is bigint and has to be int"),
        (
            "timestamp",
            LongType(),
            "'timestamp' is bigint and has to be timestamp or timestamp_ntz. With kclient.sink.timestamp=ignore",
        ),
        ("headers", TEXT, "'headers' is string and has to be array<struct<key:string,value:binary>>"),
        ("headers", ArrayType(TEXT), "'headers' is array<string> and has to be array<struct"),
    ],
)
def test_a_column_of_another_type_is_refused_by_name(name: str, kind: DataType, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        sink_columns(schema(**{"topic": TEXT, "value": BYTES, name: kind}), None)
    assert said in str(refused.value)
    assert refused.value.name == name


def test_times_without_a_zone_are_local_times() -> None:
    written = schema(value=BYTES, timestamp=TimestampNTZType())
    assert sink_columns(written, "t") == SinkColumns(("value", "timestamp"), "t", local_times=True)
    assert not sink_columns(schema(value=BYTES, timestamp=TimestampType()), "t").local_times


@pytest.mark.parametrize("kind", [TimestampType(), TimestampNTZType(), LongType()])
def test_a_timestamp_that_is_ignored_may_be_anything(kind: DataType) -> None:
    found = sink_columns(schema(value=BYTES, timestamp=kind), "t", ignore_timestamp=True)
    assert found == SinkColumns(("value",), "t")


def test_headers_of_which_nothing_is_null_are_headers() -> None:
    strict = ArrayType(
        StructType([StructField("key", TEXT, False), StructField("value", BYTES, False)]), containsNull=False
    )
    assert sink_columns(schema(value=BYTES, headers=strict), "t").names == ("value", "headers")


def test_headers_with_their_parts_in_another_order_are_refused() -> None:
    turned = ArrayType(StructType([StructField("value", BYTES), StructField("key", TEXT)]))
    with pytest.raises(ConfigError, match="'headers' is array"):
        sink_columns(schema(value=BYTES, headers=turned), "t")
