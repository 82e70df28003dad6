"""Fields of JSON that a schema does not name, wherever they are."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's users call it
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

_OBJECT = "map<string,variant>"


def unknown_fields(value: Column, schema: StructType) -> Column:
    """A map of the fields of a JSON text that are not in the schema; null if there are none, or it is no JSON object.

    Of an object in it that has such fields there are just these, and so for those in arrays and maps.
    """
    return _of_object(F.try_parse_json(value), schema)


def _of_object(value: Column, schema: StructType) -> Column:
    present = F.try_variant_get(value, "$", _OBJECT)
    names = schema.fieldNames()
    parts = [F.map_filter(present, lambda name, _: ~name.isin(names))]
    for field in schema:
        inner = _inside(F.try_element_at(present, F.lit(field.name)), field.dataType)
        if inner is not None:
            nothing = F.map_filter(present, lambda _name, _value: F.lit(False))
            parts.append(F.when(inner.isNotNull(), F.create_map(F.lit(field.name), inner)).otherwise(nothing))
    found = F.map_concat(*parts) if len(parts) > 1 else parts[0]
    return F.when(F.size(found) > 0, found)


def _inside(value: Column, kind: DataType) -> Column | None:
    """The unknown fields of a value of this type, as a variant; None where the type has no place for any."""
    if isinstance(kind, StructType):
        return _variant(_of_object(value, kind))
    if isinstance(kind, ArrayType) and _has_objects(kind.elementType):
        of_each = F.transform(
            F.try_variant_get(value, "$", "array<variant>"),
            lambda each: _some(_inside(each, kind.elementType)),
        )
        return F.when(F.exists(of_each, lambda each: each.isNotNull()), _variant(of_each))
    if isinstance(kind, MapType) and _has_objects(kind.valueType):
        of_values = F.map_filter(
            F.transform_values(
                F.try_variant_get(value, "$", _OBJECT), lambda _, each: _some(_inside(each, kind.valueType))
            ),
            lambda _, each: each.isNotNull(),
        )
        return F.when(F.size(of_values) > 0, _variant(of_values))
    return None


def _has_objects(kind: DataType) -> bool:
    if isinstance(kind, ArrayType):
        return _has_objects(kind.elementType)
    return _has_objects(kind.valueType) if isinstance(kind, MapType) else isinstance(kind, StructType)


def _some(column: Column | None) -> Column:
    assert column is not None
    return column


def _variant(column: Column) -> Column:
    return F.parse_json(F.to_json(column))
