"""Declarations: held to Kafka's schemas field by field, and refused where they make no sense."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from harness.golden import SCHEMAS, message_classes
from kclient.common.uuid import Uuid
from kclient.protocol.schema import NONE, Field, Message, Structure, Versions, message, structure, wire
from kclient.protocol.wire import Array, Bytes, Int8, Int32, String, WireType

MESSAGES = message_classes()


def snake_case(name: str) -> str:
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


def schema_of(name: str) -> dict[str, Any]:
    path = SCHEMAS / f"{name}.json"
    loaded: dict[str, Any] = json.loads(
        (path if path.exists() else SCHEMAS / "records" / f"{name}.json").read_text()
    )
    return loaded


def default_of(spec: dict[str, Any]) -> Any:
    """The default in the schema, or the one that its type has there."""
    kind, given = spec["type"], spec.get("default", ...)
    if given in ("null", None):
        return None
    if kind.startswith("[]"):
        return []
    if kind == "records":
        return None
    if kind == "string":
        return "" if given is ... else given
    if kind == "bool":
        return False if given is ... else str(given).lower() == "true"
    if kind == "bytes":
        return b""
    if kind == "uuid":
        return Uuid.ZERO
    if kind == "float64":
        return 0.0 if given is ... else float(given)
    if kind.islower() or kind[-1].isdigit():
        return 0 if given is ... else int(str(given), 0)
    return ...


def assert_declared(cls: type[Structure], specs: list[dict[str, Any]], schema: dict[str, Any]) -> None:
    commons = {common["name"]: common["fields"] for common in schema.get("commonStructs", ())}
    assert [field.name for field in cls.FIELDS] == [snake_case(spec["name"]) for spec in specs]
    for field, spec in zip(cls.FIELDS, specs, strict=True):
        where = f"{cls.__name__}.{field.name}"
        versions = Versions.parse(spec.get("versions") or spec["taggedVersions"])
        nullable = Versions.parse(spec.get("nullableVersions", "none"))
        assert field.versions == versions, where
        # A schema may call a field nullable in versions that lack it; a declaration says only what is so.
        low, high = max(nullable.low, versions.low), min(nullable.high, versions.high)
        assert field.nullable == (Versions(low, high) if low <= high else NONE), where
        assert field.tag == spec.get("tag"), where
        assert field.ignorable == spec.get("ignorable", False), where
        assert field.flexible == ("flexibleVersions" not in spec), where
        assert_same_type(cls, field, spec, commons, schema)


def assert_same_type(
    cls: type[Structure], field: Field, spec: dict[str, Any], commons: dict[str, Any], schema: dict[str, Any]
) -> None:
    where = f"{cls.__name__}.{field.name}"
    name = spec["type"].removeprefix("[]")
    assert isinstance(field.kind, Array) == spec["type"].startswith("[]"), where
    element = field.element()
    if isinstance(element, WireType):
        assert element.name == name, where
    else:
        assert element.__name__ in (name, schema["name"] + name), where
        assert_declared(element, spec.get("fields") or commons[name], schema)
    expected = default_of(spec)
    if expected is ...:
        assert isinstance(field.new_default(), Structure), where
        assert field.new_default() == getattr(cls(), field.name), where
    else:
        assert field.new_default() == expected, where
        assert getattr(cls(), field.name) == expected, where


@pytest.mark.parametrize("name", MESSAGES)
def test_a_declaration_says_what_the_schema_says(name: str) -> None:
    cls, schema = MESSAGES[name], schema_of(name)
    assert cls.__name__ == schema["name"]
    assert schema["type"] == cls.KIND
    assert Versions(cls.MIN_VERSION, cls.MAX_VERSION) == Versions.parse(schema["validVersions"])
    flexible = Versions.parse(schema["flexibleVersions"])
    assert (None if flexible == NONE else flexible.low) == cls.FLEXIBLE_FROM
    if cls.API_KEY is not None:
        assert schema["apiKey"] == cls.API_KEY
        unstable = schema.get("latestVersionUnstable", False)
        if schema["type"] == "request":
            assert cls.API_KEY.latest_version_unstable == unstable
    assert_declared(cls, schema["fields"], schema)


def test_versions_are_parsed_as_schemas_write_them() -> None:
    assert Versions.parse("3") == Versions(3, 3)
    assert Versions.parse("1-4") == Versions(1, 4)
    assert 32767 in Versions.parse("2+")
    assert 1 not in Versions.parse("2+")
    assert 0 not in Versions.parse("none")


def declare(hint: str, field: Any, *, flexible: str = "none") -> type[Message]:
    body = {"__annotations__": {"value": hint}, "value": field}
    cls: type[Message] = type("Declared", (Message,), body)
    return message(kind="data", versions="0-2", flexible=flexible)(cls)


@pytest.mark.parametrize(
    ("hint", "field", "complaint"),
    [
        ("str", wire(Int32, "0+"), "should be annotated 'int'"),
        ("str", wire(String, "0+", nullable="0+"), r"should be annotated 'str \| None'"),
        ("list[str]", wire(Array(Int32), "0+"), r"should be annotated 'list\[int\]'"),
        ("int | None", wire(Int32, "0+", nullable="0+"), "type without null"),
        ("str", wire(String, "0+", default=None), "not nullable"),
        ("str | None", wire(String, "1+", nullable="0+"), "nullable in versions that lack it"),
        ("int", wire(Int8, "0+", default=128), "bad default"),
        ("int", wire(Int8, "0+", tag=0), "not flexible"),
        ("int", wire(Int8, "0+", tag=1), "should be 0, 1, 2"),
    ],
)
def test_a_declaration_that_makes_no_sense_is_refused(hint: str, field: Any, complaint: str) -> None:
    with pytest.raises(TypeError, match=complaint):
        declare(hint, field)


def test_messages_do_not_share_lists_or_structs() -> None:
    @structure
    class Inner(Structure):
        number: int = wire(Int32, "0+")

    Inner.__qualname__ = "Inner"
    outer: Any = type(
        "Outer",
        (Message,),
        {
            "__annotations__": {"inner": "Inner", "items": "list[int]"},
            "inner": wire(Inner, "0+"),
            "items": wire(Array(Int32), "0+"),
        },
    )
    cls: Any = message(kind="data", versions="0", flexible="none")(outer)
    one, two = cls(), cls()
    one.inner.number = 5
    one.items.append(1)
    assert two == cls()


def test_the_repr_of_a_message_shows_no_payload_and_no_secret() -> None:
    cls: Any = declare("bytes", wire(Bytes, "0+"))
    assert repr(cls(value=b"secret")) == "Declared(value=<6 bytes>)"


def test_messages_are_slotted_and_refuse_unknown_names() -> None:
    cls: Any = declare("int", wire(Int32, "0+"))
    with pytest.raises(TypeError):
        cls(valeu=3)
    with pytest.raises(AttributeError):
        cls().valeu = 3
