"""Schemas of Parquet files that can be read together, and those that cannot."""

from __future__ import annotations

import pytest
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from kclient.errors import ConfigError
from kclient.spark.pipelines.output_schema import merge

WORDS = {"int": "integer", "bigint": "long"}


def kind_of(text: str) -> DataType:
    """A type by its DDL, which PySpark itself can read with a JVM alone."""
    if text.startswith("array<"):
        return ArrayType(kind_of(text[6:-1]))
    if text.startswith("map<"):
        return MapType(*map(kind_of, text[4:-1].split(",")))
    return StructType.fromJson({"fields": [{"name": "a", "type": WORDS.get(text, text), "nullable": True}]})[
        "a"
    ].dataType


def schema(*columns: tuple[str, str | StructType]) -> StructType:
    return StructType(
        [StructField(name, kind_of(kind) if isinstance(kind, str) else kind) for name, kind in columns]
    )


@pytest.mark.parametrize(
    ("one", "other", "merged"),
    [
        ("int", "bigint", "bigint"),
        ("int", "double", "double"),
        ("float", "double", "double"),
        ("int", "decimal(4,2)", "decimal(12,2)"),
        ("bigint", "decimal(4,2)", "decimal(22,2)"),
        ("decimal(12,2)", "decimal(8,4)", "decimal(14,4)"),
        ("string", "string", "string"),
        ("array<int>", "array<bigint>", "array<bigint>"),
        ("map<string,int>", "map<string,bigint>", "map<string,bigint>"),
    ],
)
def test_numbers_are_read_in_the_wider_type_whichever_came_first(one: str, other: str, merged: str) -> None:
    for first, second in ((one, other), (other, one)):
        assert merge(schema(("a", first)), schema(("a", second))) == schema(("a", merged))


def test_columns_that_come_and_go_are_all_there() -> None:
    old = schema(("a", "int"), ("b", schema(("x", "int"), ("y", "string"))))
    new = schema(("c", "date"), ("b", schema(("y", "string"), ("z", "int"))))
    assert merge(old, new) == schema(
        ("a", "int"), ("b", schema(("x", "int"), ("y", "string"), ("z", "int"))), ("c", "date")
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("bigint", "double"),
        ("int", "string"),
        ("date", "timestamp"),
        ("bigint", "decimal(38,30)"),
        ("array<int>", "int"),
        ("map<string,int>", "map<int,int>"),
    ],
)
def test_others_are_refused_with_the_column(one: str, other: str) -> None:
    for first, second in ((one, other), (other, one)):
        with pytest.raises(ConfigError, match=r"Column b\.a is .* before and .* now"):
            merge(schema(("b", schema(("a", first)))), schema(("b", schema(("a", second)))))
