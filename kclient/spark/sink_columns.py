"""The columns of a query that are written, checked before anything runs."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.types import (
    BinaryType,
    DataType,
    IntegerType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from kclient.errors import ConfigError
from kclient.spark.output import SinkColumns
from kclient.spark.schema import HEADERS_TYPE

_TEXT_OR_BYTES = (StringType, BinaryType)
_COLUMNS: Mapping[str, tuple[type[DataType], ...]] = {
    "key": _TEXT_OR_BYTES,
    "value": _TEXT_OR_BYTES,
    "topic": (StringType,),
    "partition": (IntegerType,),
    "headers": (type(HEADERS_TYPE),),
    "timestamp": (TimestampType, TimestampNTZType),
}


def sink_columns(schema: StructType, topic: str | None, *, ignore_timestamp: bool = False) -> SinkColumns:
    """Return the columns of `schema` to write. `value` must be there; columns with other names are left out.

    So are `topic` if there is one for all, and `timestamp` with `ignore_timestamp`, whatever their types. Raises
    ConfigError for a missing column and for a wrong type.
    """
    fields = {field.name: field for field in schema}
    if "value" not in fields:
        raise ConfigError(
            f"A column 'value' is needed to write to Kafka; there is {_listed(fields)}.", name="value"
        )
    if topic is None and "topic" not in fields:
        raise ConfigError("Say where to write: by the option topic, or by a column 'topic'.", name="topic")
    unused = {"topic"} if topic is not None else set()
    unused |= {"timestamp"} if ignore_timestamp else set()
    chosen = [name for name in _COLUMNS if name in fields and name not in unused]
    for name in chosen:
        _check_type(fields[name])
    local = "timestamp" in chosen and isinstance(fields["timestamp"].dataType, TimestampNTZType)
    return SinkColumns(tuple(chosen), topic, local)


def _check_type(field: StructField) -> None:
    kind = field.dataType
    fits = isinstance(kind, _COLUMNS[field.name])
    if field.name == "headers":
        wanted = HEADERS_TYPE.simpleString()
        fits = fits and kind.simpleString() == wanted
    else:
        wanted = " or ".join(each().simpleString() for each in _COLUMNS[field.name])
    if not fits:
        hint = " With kclient.sink.timestamp=ignore it is left out." if field.name == "timestamp" else ""
        raise ConfigError(
            f"Column {field.name!r} is {kind.simpleString()} and has to be {wanted}.{hint}", name=field.name
        )


def _listed(fields: Mapping[str, StructField]) -> str:
    return ", ".join(fields) or "none at all"
