"""Schemas of a folder of Parquet, whose files are of several when the schema of the events has changed.

Every schema that was written is kept in the folder itself, in `_schemas`, where readers look for no data. A new one has
to go with those before it: more columns, fewer, and numbers that have become wider can be read together, anything else
is refused before a row is written.
"""

from __future__ import annotations

import json
from functools import reduce

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StructField,
    StructType,
)

from kclient.errors import ConfigError

_WHOLE = (ByteType(), ShortType(), IntegerType(), LongType())
# Digits that a decimal needs before the point, so that Spark reads whole numbers of a file as such.
_DIGITS = dict(zip(_WHOLE, (10, 10, 10, 20), strict=True))
_MOST_DIGITS = 38
_NOT_THERE = ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA")


def settle(spark: SparkSession, folder: str, schema: StructType, partitions: tuple[str, ...] = ()) -> None:
    """Note that files of this schema come into the folder, without its `partitions`.

    Raises ConfigError if no reader can put them together with what is there.
    """
    known = _known(spark, folder, partitions)
    own = StructType([field for field in schema if field.name not in partitions])
    try:
        merged = own if known is None else merge(known, own)
    except ConfigError as error:
        raise ConfigError(
            f"{error} Give it another name, or write to another folder than {folder}.", name="schema"
        ) from None
    if known is None or merged != known:
        spark.createDataFrame([(merged.json(),)], "value string").coalesce(1).write.mode("append").text(
            _place(folder)
        )


def read_output(spark: SparkSession, folder: str) -> DataFrame:
    """A folder that a pipeline has written, each column in its widest type, null where it was missing."""
    known = _recorded(spark, folder)
    reader = spark.read if known is None else spark.read.schema(known)
    return reader.parquet(folder)


def merge(one: StructType, other: StructType) -> StructType:
    """The schema in which files of both can be read. Raises ConfigError that names a column that keeps them apart."""
    merged = _merge(one, other, "")
    assert isinstance(merged, StructType)
    return merged


def _merge(one: DataType, other: DataType, place: str) -> DataType:
    if isinstance(one, StructType) and isinstance(other, StructType):
        fields = {field.name: field for field in one}
        for field in other:
            there = fields.get(field.name)
            kind = field.dataType
            if there is not None:
                kind = _merge(there.dataType, kind, f"{place}.{field.name}" if place else field.name)
            fields[field.name] = StructField(field.name, kind)
        return StructType(list(fields.values()))
    if isinstance(one, ArrayType) and isinstance(other, ArrayType):
        return ArrayType(_merge(one.elementType, other.elementType, f"{place}[]"))
    if isinstance(one, MapType) and isinstance(other, MapType) and one.keyType == other.keyType:
        return MapType(one.keyType, _merge(one.valueType, other.valueType, f"{place}{{}}"))
    for narrow, wide in ((one, other), (other, one)):
        found = _wider(narrow, wide)
        if found is not None:
            return found
    raise ConfigError(
        f"Column {place} is {one.simpleString()} in what was written before and {other.simpleString()} now, which "
        "cannot be read together.",
        name="schema",
    )


def _wider(narrow: DataType, wide: DataType) -> DataType | None:
    """The type in which files of both can be read, as far as Spark widens a file's numbers; None if there is none."""
    if narrow == wide:
        return wide
    if narrow in _WHOLE:
        if wide in _WHOLE:
            return max(narrow, wide, key=_WHOLE.index)
        if isinstance(wide, DoubleType):
            return None if narrow == LongType() else wide
        if isinstance(wide, DecimalType):
            digits = max(wide.precision - wide.scale, _DIGITS[narrow])
            return _decimal(digits, wide.scale)
    if isinstance(narrow, FloatType) and isinstance(wide, DoubleType):
        return wide
    if isinstance(narrow, DecimalType) and isinstance(wide, DecimalType):
        digits = max(each.precision - each.scale for each in (narrow, wide))
        return _decimal(digits, max(narrow.scale, wide.scale))
    return None


def _decimal(digits: int, scale: int) -> DecimalType | None:
    return DecimalType(digits + scale, scale) if digits + scale <= _MOST_DIGITS else None


def _place(folder: str) -> str:
    return f"{folder.rstrip('/')}/_schemas"


def _recorded(spark: SparkSession, folder: str) -> StructType | None:
    try:
        lines = spark.read.text(_place(folder)).collect()
    except AnalysisException as error:
        if error.getCondition() not in _NOT_THERE:
            raise
        return None
    schemas = [StructType.fromJson(json.loads(line.value)) for line in lines]
    return reduce(merge, schemas) if schemas else None


def _known(spark: SparkSession, folder: str, partitions: tuple[str, ...]) -> StructType | None:
    recorded = _recorded(spark, folder)
    if recorded is not None:
        return recorded
    try:
        found = spark.read.parquet(folder).schema
    except AnalysisException as error:
        if error.getCondition() not in _NOT_THERE:
            raise
        return None
    return StructType([field for field in found if field.name not in partitions])
