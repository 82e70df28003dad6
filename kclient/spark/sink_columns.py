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
    "timestamp": (TimestampType,),
}


def sink_columns(schema: StructType, topic: str | None) -> SinkColumns:
    """Return the columns of `schema` to write. `value` must be there; columns with other names are left out.

    Raises ConfigError for a missing column and for a wrong type.
    """
    fields = {field.name: field for field in schema}
    if "value" not in fields:
        raise ConfigError(
            f"A column 'value' is needed to write to Kafka; there is {_listed(fields)}.", name="value"
        )
    if topic is None and "topic" not in fields:
        raise ConfigError("Say where to write: by the option topic, or by a column 'topic'.", name="topic")
    chosen = [name for name in _COLUMNS if name in fields and not (name == "topic" and topic is not None)]
    for name in chosen:
        _check_type(fields[name])
    return SinkColumns(tuple(chosen), topic)


def _check_type(field: StructField) -> None:
    kind = field.dataType
    fits = isinstance(kind, _COLUMNS[field.name])
    if field.name == "headers":
        wanted = HEADERS_TYPE.simpleString()
        fits = fits and kind.simpleString() == wanted
    else:
        wanted = " or ".join(each().simpleString() for each in _COLUMNS[field.name])
    if not fits:
        raise ConfigError(
            f"Column {field.name!r} is {kind.simpleString()} and has to be {wanted}.", name=field.name
        )


def _listed(fields: Mapping[str, StructField]) -> str:
    return ", ".join(fields) or "none at all"
