"""Schemas in files: Spark's DDL, Spark's JSON (`df.schema.json()`), or a JSON Schema. Needs no PySpark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from kclient.errors import ConfigError

_SCALARS = {"integer": "bigint", "number": "double", "boolean": "boolean", "string": "string"}
_FORMATS = {"date-time": "timestamp", "date": "date"}
# What says how values are put together from several schemas, which no column can be.
_COMPOSED = ("$ref", "allOf", "anyOf", "oneOf", "not", "if", "patternProperties", "prefixItems")


@attrs.frozen
class SchemaFile:
    """The schema of a file in DDL, and the columns without which a row is bad, which only a JSON Schema tells."""

    ddl: str
    required: tuple[str, ...] = ()


def load_schema(path: str | Path) -> SchemaFile:
    """Read a schema. Raises ConfigError that names the file, and the place in it that no column can be made of.

    Of a JSON Schema: objects with `properties` are structs and others maps, `format` date-time and date are timestamps
    and dates, integers are bigint and numbers double; a type may be null as well. What it says of values (`minimum`,
    `enum`, `pattern`) is not checked: conditions are there for that.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error.reason
        raise ConfigError(f"The schema {str(path)!r} cannot be read: {reason}.", name="schema") from error
    if not text.lstrip().startswith("{"):
        return SchemaFile(" ".join(text.split()))
    try:
        found = json.loads(text)
        if found.get("type") == "struct" and isinstance(found.get("fields"), list):
            return SchemaFile(_fields(found))
        if not isinstance(found.get("properties"), Mapping):
            raise _NoColumnError(
                "$", "has neither properties, as a JSON Schema, nor fields, as a schema of Spark's"
            )
        return SchemaFile(_properties(found, "$"), tuple(found.get("required", ())))
    except (ValueError, _NoColumnError) as error:
        raise ConfigError(f"The schema {str(path)!r}: {error}", name="schema") from None


class _NoColumnError(Exception):
    def __init__(self, place: str, problem: str) -> None:
        super().__init__(f"{place} {problem}.")


def _name(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _fields(struct: Mapping[str, Any], colon: str = "") -> str:
    return ", ".join(
        f"{_name(field['name'])}{colon} {_of_spark(field['type'])}" for field in struct["fields"]
    )


def _of_spark(kind: Any) -> str:
    if isinstance(kind, str):
        # Spark's JSON has the names of DDL, but for these two.
        return {"integer": "int", "long": "bigint"}.get(kind, kind)
    if kind["type"] == "struct":
        return f"struct<{_fields(kind, ':')}>"
    if kind["type"] == "array":
        return f"array<{_of_spark(kind['elementType'])}>"
    return f"map<{_of_spark(kind['keyType'])}, {_of_spark(kind['valueType'])}>"


def _properties(schema: Mapping[str, Any], place: str, colon: str = "") -> str:
    return ", ".join(
        f"{_name(name)}{colon} {_of_json(each, f'{place}.{name}')}"
        for name, each in schema["properties"].items()
    )


def _of_json(schema: Any, place: str) -> str:
    if not isinstance(schema, Mapping):
        raise _NoColumnError(place, "is no object, so that it says nothing of a type")
    composed = [word for word in _COMPOSED if word in schema]
    if composed:
        raise _NoColumnError(place, f"has {composed[0]}, of which no column can be made")
    kinds = schema.get("type")
    several = [each for each in (kinds if isinstance(kinds, list) else [kinds]) if each != "null"]
    kind = several[0] if len(several) == 1 else None
    if kind == "object":
        if schema.get("properties"):
            return f"struct<{_properties(schema, place, ':')}>"
        values = schema.get("additionalProperties")
        return f"map<string, {_of_json(values, place + '.*') if isinstance(values, Mapping) else 'string'}>"
    if kind == "array":
        return f"array<{_of_json(schema.get('items', {'type': 'string'}), place + '[]')}>"
    if kind not in _SCALARS:
        raise _NoColumnError(place, f"has the type {json.dumps(kinds)}, of which no column can be made")
    return _FORMATS.get(schema.get("format", ""), "string") if kind == "string" else _SCALARS[kind]
