"""The columns of a source, and which of them a user's schema asks for."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kclient.errors import ConfigError
from kclient.spark.output import OutputColumn

HEADERS_TYPE = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))

COLUMNS: Mapping[str, DataType] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": HEADERS_TYPE,
}
"""The columns in their order; `headers` only if it is asked for."""

_BY_LOWER = {name.lower(): name for name in COLUMNS}
_MAY_BE_NULL = {"key", "value", "headers"}


def source_schema(include_headers: bool) -> StructType:
    """The schema without a user's own: that of spark-sql-kafka-0-10."""
    return StructType(
        [StructField(name, kind) for name, kind in COLUMNS.items() if include_headers or name != "headers"]
    )


def output_columns(schema: StructType) -> tuple[OutputColumn, ...]:
    """The columns that `schema` asks for, in its order. Raises ConfigError for others and for other types.

    Fewer columns than there are is how a query reads less: Spark tells a Python data source of no other.
    """
    found: list[OutputColumn] = []
    for field in schema:
        column = _BY_LOWER.get(field.name.lower())
        if column is None:
            raise ConfigError(
                f"schema: there is no column {field.name!r}; there are {', '.join(COLUMNS)}.", name="schema"
            )
        if field.dataType != COLUMNS[column]:
            raise ConfigError(
                f"schema: column {field.name!r} is {COLUMNS[column].simpleString()}, not "
                f"{field.dataType.simpleString()}; cast it after reading.",
                name="schema",
            )
        if column in _MAY_BE_NULL and not field.nullable:
            raise ConfigError(f"schema: column {field.name!r} can be null in Kafka.", name="schema")
        found.append(OutputColumn(column, field.name, field.nullable))
    return tuple(found)
