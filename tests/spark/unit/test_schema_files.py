"""Schemas of pipelines in files: DDL, Spark's JSON and JSON Schemas become the same DDL."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kclient.errors import ConfigError
from kclient.spark.pipelines.schema_files import SchemaFile, load_schema


def load(folder: Path, text: str) -> SchemaFile:
    (folder / "schema").write_text(text)
    return load_schema(folder / "schema")


def test_ddl_may_have_lines(tmp_path: Path) -> None:
    assert load(tmp_path, "id string,\n  n int\n") == SchemaFile("id string, n int")


def test_sparks_json_becomes_ddl(tmp_path: Path) -> None:
    def field(name: str, kind: Any) -> dict[str, Any]:
        return {"name": name, "type": kind, "nullable": True, "metadata": {}}

    inner = {"type": "struct", "fields": [field("a`b", "integer")]}
    schema = [
        field("id", "string"),
        field("n", "long"),
        field("amount", "decimal(12,2)"),
        field("customer", inner),
        field("tags", {"type": "array", "elementType": inner, "containsNull": True}),
        field("more", {"type": "map", "keyType": "string", "valueType": "double", "valueContainsNull": True}),
    ]
    assert load(tmp_path, json.dumps({"type": "struct", "fields": schema})).ddl == (
        "`id` string, `n` bigint, `amount` decimal(12,2), `customer` struct<`a``b`: int>, "
        "`tags` array<struct<`a``b`: int>>, `more` map<string, double>"
    )


def test_a_json_schema_becomes_ddl_and_tells_the_required_columns(tmp_path: Path) -> None:
    schema = {
        "type": "object",
        "required": ["id", "time"],
        "properties": {
            "id": {"type": "string", "minLength": 1},
            "time": {"type": "string", "format": "date-time"},
            "day": {"type": ["string", "null"], "format": "date"},
            "n": {"type": "integer"},
            "rate": {"type": ["null", "number"]},
            "customer": {"type": "object", "properties": {"vip": {"type": "boolean"}}},
            "items": {
                "type": "array",
                "items": {"type": "object", "properties": {"sku": {"type": "string"}}},
            },
            "labels": {"type": "object", "additionalProperties": {"type": "integer"}},
            "free": {"type": "object"},
        },
    }
    assert load(tmp_path, json.dumps(schema)) == SchemaFile(
        "`id` string, `time` timestamp, `day` date, `n` bigint, `rate` double, `customer` struct<`vip`: boolean>, "
        "`items` array<struct<`sku`: string>>, `labels` map<string, bigint>, `free` map<string, string>",
        ("id", "time"),
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "Expecting property name"),
        ('{"type": "object"}', r"\$ has neither properties"),
        ('{"properties": {"a": {"$ref": "#/x"}}}', r"\$\.a has \$ref"),
        ('{"properties": {"a": {"properties": {"b": {"type": "object"}}}}}', r"\$\.a has the type null"),
        (
            '{"properties": {"a": {"type": ["string", "integer"]}}}',
            r'\$\.a has the type \["string", "integer"\]',
        ),
        ('{"properties": {"a": {"type": "array", "items": true}}}', r"\$\.a\[\] is no object"),
    ],
)
def test_what_no_column_can_be_made_of_is_refused_with_its_place(
    tmp_path: Path, text: str, said: str
) -> None:
    with pytest.raises(ConfigError, match=rf"The schema '.*schema': {said}"):
        load(tmp_path, text)


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match="'/nowhere' cannot be read: No such file"):
        load_schema("/nowhere")
