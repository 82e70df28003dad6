"""Generated codecs against a plain interpreter of the same declarations: all messages, all versions."""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.golden import message_classes
from kclient.common.uuid import Uuid
from kclient.errors import SchemaError
from kclient.protocol import decode, encode
from kclient.protocol.schema import Field, Message, Structure
from kclient.protocol.wire import UUID, Array, Bytes, Records, String, WireType


class Interpreter:
    """Reads and writes one message at one version, field by field, with no thought of speed."""

    def __init__(self, cls: type[Message], version: int) -> None:
        self.cls, self.version = cls, version
        self.flexible = cls.FLEXIBLE_FROM is not None and version >= cls.FLEXIBLE_FROM

    def write(self, message: Structure) -> bytes:
        out, tags = b"", dict(message.unknown_tagged_fields or {})
        for field in message.FIELDS:
            value = getattr(message, field.name)
            if self.version not in field.versions:
                continue
            if field.tag is None:
                out += self.write_value(field, field.kind, value)
            elif value != field.new_default():
                tags[field.tag] = self.write_value(field, field.kind, value)
        if self.flexible:
            out += varint(len(tags))
            for tag in sorted(tags):
                out += varint(tag) + varint(len(tags[tag])) + tags[tag]
        return out

    def write_value(self, field: Field, kind: Any, value: Any) -> bytes:
        compact = self.flexible and field.flexible
        if isinstance(kind, WireType) and kind.code:
            return struct.pack(">" + kind.code, value.bytes if kind is UUID else value)
        if not isinstance(kind, WireType | Array):
            marker = b"" if self.version not in field.nullable else b"\xff" if value is None else b"\1"
            return marker if value is None else marker + self.write(value)
        if isinstance(kind, Array):
            size, body = 0 if value is None else len(value), b""
            for item in value or ():
                body += (
                    self.write(item)
                    if isinstance(item, Structure)
                    else self.write_value(field, kind.of, item)
                )
        else:
            body = b"" if value is None else value.encode() if kind is String else bytes(value)
            size = len(body)
        if compact:
            return varint(0 if value is None else size + 1) + body
        return struct.pack(">h" if kind is String else ">i", -1 if value is None else size) + body

    def read(self, cls: type[Structure]) -> Any:
        made = cls()
        for field in cls.FIELDS:
            if self.version in field.versions and field.tag is None:
                self.read_field(made, field)
        known = {f.tag: f for f in cls.FIELDS if f.tag is not None and self.version in f.versions}
        last = -1
        for _ in range(self.varint() if self.flexible else 0):
            tag, size = self.varint(), self.varint()
            assert tag > last
            last, stop = tag, self.pos + size
            if tag in known:
                self.read_field(made, known[tag])
            else:
                made.unknown_tagged_fields = (made.unknown_tagged_fields or {}) | {tag: self.take(size)}
            assert self.pos == stop
        return made

    def read_field(self, made: Structure, field: Field) -> None:
        nullable = self.version in field.nullable
        setattr(made, field.name, self.read_value(field, field.kind, nullable=nullable))

    def read_value(self, field: Field, kind: Any, *, nullable: bool) -> Any:
        compact = self.flexible and field.flexible
        if isinstance(kind, WireType) and kind.code:
            value = struct.unpack(">" + kind.code, self.take(kind.size))[0]
            return Uuid(value) if kind is UUID else value
        if not isinstance(kind, WireType | Array):
            return None if nullable and struct.unpack("b", self.take(1))[0] < 0 else self.read(kind)
        if compact:
            size = self.varint() - 1
        else:
            size = struct.unpack(*((">h", self.take(2)) if kind is String else (">i", self.take(4))))[0]
        if size < 0:
            assert nullable or kind is Records
            assert size >= -1 or not (compact and isinstance(kind, Array))
            return None
        if not isinstance(kind, Array):
            raw = self.take(size)
            return raw.decode("utf-8", "replace") if kind is String else raw
        if isinstance(kind.of, WireType):
            return [self.read_value(field, kind.of, nullable=False) for _ in range(size)]
        return [self.read(kind.of) for _ in range(size)]

    def read_all(self, raw: bytes) -> Any:
        self.raw, self.pos = raw, 0
        try:
            made = self.read(self.cls)
            assert self.pos == len(raw)
        except AssertionError as error:
            raise SchemaError from error
        return made

    def take(self, size: int) -> bytes:
        assert 0 <= size <= len(self.raw) - self.pos
        self.pos += size
        return self.raw[self.pos - size : self.pos]

    def varint(self) -> int:
        value = 0
        for shift in range(0, 35, 7):
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            if byte < 128:
                value &= 0xFFFFFFFF
                return value - (1 << 32) if value >> 31 else value
        raise SchemaError("varint")


def varint(value: int) -> bytes:
    return bytes((value,)) if value < 128 else bytes((value & 127 | 128,)) + varint(value >> 7)


def all_messages() -> list[tuple[type[Message], int]]:
    return [
        (cls, version)
        for cls in message_classes().values()
        for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1)
    ]


def any_struct(cls: type[Structure], version: int, rnd: random.Random, *, flexible: bool) -> Any:
    """A struct with random values in the fields that `version` has."""
    made = cls()
    for field in cls.FIELDS:
        if version not in field.versions:
            continue
        nullable = version in field.nullable
        if (nullable and rnd.random() < 0.2) or (
            field.default is None and not nullable and field.kind is not Records
        ):
            setattr(
                made, field.name, None if nullable else any_value(field.kind, version, rnd, flexible=flexible)
            )
        elif field.tag is None or rnd.random() < 0.5:
            setattr(made, field.name, any_value(field.kind, version, rnd, flexible=flexible))
    if flexible and rnd.random() < 0.2:
        made.unknown_tagged_fields = {
            rnd.randrange(50, 1 << rnd.randrange(7, 31)): rnd.randbytes(3) for _ in range(2)
        }
    return made


def any_value(kind: Any, version: int, rnd: random.Random, *, flexible: bool) -> Any:
    if isinstance(kind, Array):
        return [any_value(kind.of, version, rnd, flexible=flexible) for _ in range(rnd.choice((0, 1, 2, 3)))]
    if not isinstance(kind, WireType):
        return any_struct(kind, version, rnd, flexible=flexible)
    if kind is String:
        return rnd.choice(("", "a", "größe", "\U0001f600", "x" * rnd.randrange(300)))
    if kind in (Bytes, Records):
        return rnd.randbytes(rnd.choice((0, 1, 200, 1500)))
    if kind is UUID:
        return rnd.choice((Uuid.ZERO, Uuid(rnd.randbytes(16))))
    assert kind.code is not None
    return (
        struct.unpack(">" + kind.code, rnd.randbytes(kind.size))[0]
        if kind.python != "float"
        else rnd.random()
    )


def assert_agree(cls: type[Message], version: int, rnd: random.Random) -> bytes:
    interpreter = Interpreter(cls, version)
    message = any_struct(cls, version, rnd, flexible=interpreter.flexible)
    raw = encode(message, version)
    assert raw == interpreter.write(message)
    assert decode(cls, version, raw) == interpreter.read_all(raw) == message
    return raw


PAIRS = all_messages()


@pytest.mark.parametrize("seed", [1, 2])
def test_codecs_agree_with_the_interpreter_in_every_version(seed: int) -> None:
    rnd = random.Random(seed)
    for cls, version in PAIRS:
        assert_agree(cls, version, rnd)


@settings(deadline=None, max_examples=200)
@given(st.sampled_from(PAIRS), st.randoms(use_true_random=False))
def test_codecs_agree_with_the_interpreter_on_any_message(
    pair: tuple[type[Message], int], rnd: random.Random
) -> None:
    assert_agree(*pair, rnd)


@settings(deadline=None, max_examples=300)
@given(st.sampled_from(PAIRS), st.randoms(use_true_random=False), st.data())
def test_codecs_agree_with_the_interpreter_on_damaged_bytes(
    pair: tuple[type[Message], int], rnd: random.Random, data: st.DataObject
) -> None:
    cls, version = pair
    raw = bytearray(assert_agree(cls, version, rnd))
    for _ in range(data.draw(st.integers(1, 3))):
        if raw:
            raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    raw = raw[: data.draw(st.integers(0, len(raw)))] if data.draw(st.booleans()) else raw
    try:
        expected = Interpreter(cls, version).read_all(bytes(raw))
    except SchemaError:
        with pytest.raises(SchemaError):
            decode(cls, version, bytes(raw))
    else:
        # By repr, in which NaN is NaN; it leaves out the contents of bytes, which compare as they are.
        decoded = decode(cls, version, bytes(raw))
        assert repr(decoded) == repr(expected)
        assert encode(decoded, version) == encode(expected, version)
