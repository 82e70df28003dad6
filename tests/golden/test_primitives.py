"""Wire types and varints against the Java client: values, and its answers to damaged or unusual bytes."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest

from harness.golden import golden_lines
from kclient._accel.shared.varint import read_varint, read_varlong, zigzag
from kclient.common.uuid import Uuid
from kclient.errors import SchemaError
from kclient.protocol import decode_prefix, encode, wire
from kclient.protocol.schema import Message, message
from kclient.protocol.schema import wire as field
from kclient.protocol.wire import Array, WireType, read_unsigned_varint, unsigned_varint

pytestmark = pytest.mark.golden

# Version 0 has the old form of a type, version 1 the compact one, which a section of tagged fields follows.
CLASSIC, COMPACT = 0, 1
NO_TAGS = b"\0"

WIRE_TYPES: dict[str, WireType | Array] = {
    "BOOLEAN": wire.Bool,
    "INT8": wire.Int8,
    "INT16": wire.Int16,
    "UINT16": wire.UInt16,
    "INT32": wire.Int32,
    "UNSIGNED_INT32": wire.UInt32,
    "INT64": wire.Int64,
    "FLOAT64": wire.Float64,
    "UUID": wire.UUID,
    "STRING": wire.String,
    "BYTES": wire.Bytes,
    "RECORDS": wire.Records,
    "ARRAY(INT32)": Array(wire.Int32),
}


def holder(kind: WireType | Array, *, nullable: bool) -> type[Message]:
    """A message of one field."""
    hint = "list[int]" if isinstance(kind, Array) else kind.python
    nullable = nullable or kind is wire.Records
    declared = field(kind, "0+", nullable="0+") if nullable else field(kind, "0+")
    body = {"__annotations__": {"value": f"{hint} | None" if nullable else hint}, "value": declared}
    cls = type("Holder", (Message,), body)
    return message(kind="data", versions="0-1", flexible="1+")(cls)


@message(kind="data", versions="0-1", flexible="1+")
class TagsOnly(Message):
    pass


def split_name(name: str) -> tuple[str, bool, int]:
    """The name of the type without its qualifiers, whether it is nullable, and the version that has its form."""
    version = COMPACT if name.startswith("COMPACT_") else CLASSIC
    name = name.removeprefix("COMPACT_")
    return name.removeprefix("NULLABLE_"), name.startswith("NULLABLE_"), version


def from_json(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name in ("BYTES", "RECORDS"):
        return base64.b64decode(value)
    return Uuid.from_base64(value) if name == "UUID" else value


def lines_of(*kinds: str) -> list[dict[str, Any]]:
    return [line for line in golden_lines("primitives") if line["kind"] in kinds]


def test_types_are_written_and_read_as_in_java() -> None:
    for line in lines_of("type"):
        raw = bytes.fromhex(line["hex"])
        name, nullable, version = split_name(line["type"])
        made: Any
        if name == "TAGGED_FIELDS":
            tags = {int(tag): base64.b64decode(data) for tag, data in line["value"].items()}
            made = TagsOnly(unknown_tagged_fields=tags or None)
            assert encode(made, COMPACT) == raw, line
            assert decode_prefix(TagsOnly, COMPACT, raw) == (made, len(raw)), line
            continue
        cls: Any = holder(WIRE_TYPES[name], nullable=nullable)
        made = cls(value=from_json(name, line["value"]))
        raw += NO_TAGS if version == COMPACT else b""
        assert encode(made, version) == raw, line
        decoded, end = decode_prefix(cls, version, raw)
        # By repr: -0.0 is not 0.0 and NaN is NaN.
        assert end == len(raw), line
        if name != "RECORDS":
            assert repr(decoded.value) == repr(made.value), line
        assert decoded.value == made.value or made.value != made.value, line


def read_signed(
    read: Callable[[bytes, int, int, int], tuple[int, int]],
) -> Callable[[bytes], tuple[int, int]]:
    def signed(raw: bytes) -> tuple[int, int]:
        value, end = read(raw, 0, 0, 0)
        return (value >> 1) ^ -(value & 1), end

    return signed


READERS: dict[str, Callable[[bytes], tuple[int, int]]] = {
    "unsigned_varint": lambda raw: read_unsigned_varint(raw, 0),
    "unsigned_varlong": lambda raw: read_varlong(raw, 0, 0, 0),
    "varint": read_signed(read_varint),
    "varlong": read_signed(read_varlong),
}


def test_varints_are_written_and_read_as_in_java() -> None:
    for line in lines_of(*READERS):
        raw, value = bytes.fromhex(line["hex"]), int(line["value"])
        assert READERS[line["kind"]](raw) == (value, len(raw)), line
        if line["kind"] == "unsigned_varint":
            assert unsigned_varint(value) == raw, line
        elif line["kind"] in ("varint", "varlong"):
            assert zigzag(value) == raw, line


def test_damaged_varints_get_the_answer_of_java() -> None:
    for line in lines_of("decode"):
        if line["type"] not in READERS:
            continue
        raw = bytes.fromhex(line["hex"])
        if line["exception"]:
            with pytest.raises((IndexError, ValueError, SchemaError)):
                READERS[line["type"]](raw)
        else:
            assert READERS[line["type"]](raw) == (int(line["value"]), line["consumed"]), line


def test_damaged_values_get_the_answer_of_java() -> None:
    for line in lines_of("decode"):
        if line["type"] in READERS:
            continue
        raw = bytes.fromhex(line["hex"])
        name, nullable, version = split_name(line["type"])
        tagged = name == "TAGGED_FIELDS"
        cls: Any = TagsOnly if tagged else holder(WIRE_TYPES[name], nullable=nullable)
        version = COMPACT if tagged else version
        after = NO_TAGS if version == COMPACT and not tagged else b""
        if line["exception"]:
            # The tags after it must not make it right: the value itself is what is wrong.
            for buf in (raw, raw + after):
                with pytest.raises(SchemaError):
                    decode_prefix(cls, version, buf)
            continue
        raw = raw[: line["consumed"]] + after
        decoded, end = decode_prefix(cls, version, raw)
        assert end - len(after) == line["consumed"], line
        if tagged:
            tags = {int(tag): base64.b64decode(data) for tag, data in line["value"].items()}
            assert (decoded.unknown_tagged_fields or {}) == tags, line
        else:
            assert decoded.value == from_json(name, line["value"]), line
