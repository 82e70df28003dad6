"""Simple types as Java's bytes."""

from __future__ import annotations

import math
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.errors import SerializationError
from kclient.serialization import (
    BooleanDeserializer,
    BooleanSerializer,
    BytesDeserializer,
    BytesSerializer,
    DoubleDeserializer,
    DoubleSerializer,
    FloatDeserializer,
    FloatSerializer,
    IntegerDeserializer,
    IntegerSerializer,
    LongDeserializer,
    LongSerializer,
    ShortDeserializer,
    ShortSerializer,
    StringDeserializer,
    StringSerializer,
    UUIDDeserializer,
    UUIDSerializer,
    VoidDeserializer,
    VoidSerializer,
)

PAIRS: dict[str, tuple[Any, Any]] = {
    "boolean": (BooleanSerializer(), BooleanDeserializer()),
    "bytes": (BytesSerializer(), BytesDeserializer()),
    "double": (DoubleSerializer(), DoubleDeserializer()),
    "float": (FloatSerializer(), FloatDeserializer()),
    "integer": (IntegerSerializer(), IntegerDeserializer()),
    "long": (LongSerializer(), LongDeserializer()),
    "short": (ShortSerializer(), ShortDeserializer()),
    "string": (StringSerializer(), StringDeserializer()),
    "uuid": (UUIDSerializer(), UUIDDeserializer()),
    "void": (VoidSerializer(), VoidDeserializer()),
}

SAMPLES = [
    ("boolean", True, "01"),
    ("boolean", False, "00"),
    ("bytes", b"\x00\xff", "00ff"),
    ("double", 1.5, "3ff8000000000000"),
    ("double", -0.0, "8000000000000000"),
    ("float", 1.5, "3fc00000"),
    ("integer", -2, "fffffffe"),
    ("integer", 2**31 - 1, "7fffffff"),
    ("long", -(2**63), "8000000000000000"),
    ("long", 1, "0000000000000001"),
    ("short", -32768, "8000"),
    ("short", 258, "0102"),
    ("string", "", ""),
    ("string", "né€😀", "6ec3a9e282acf09f9880"),
    ("uuid", uuid.UUID(int=1), b"00000000-0000-0000-0000-000000000001".hex()),
]


@pytest.mark.parametrize(("name", "value", "expected"), SAMPLES)
def test_a_value_has_javas_bytes_and_comes_back(name: str, value: object, expected: str) -> None:
    serializer, deserializer = PAIRS[name]
    data = serializer.serialize("t", value, ())
    assert data.hex() == expected
    back = deserializer.deserialize("t", data, ())
    assert (type(back), str(back)) == (type(value), str(value))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("boolean", 1),
        ("bytes", "text"),
        ("bytes", 3),
        ("double", "1.5"),
        ("double", True),
        ("double", 10**400),
        ("float", 1e300),
        ("integer", 2**31),
        ("integer", True),
        ("integer", 1.0),
        ("integer", "1"),
        ("long", 2**63),
        ("short", -32769),
        ("string", b"bytes"),
        ("string", 5),
        ("uuid", "00000000-0000-0000-0000-000000000001"),
        ("void", "anything"),
    ],
)
def test_a_value_of_another_type_or_out_of_range_is_refused(name: str, value: object) -> None:
    with pytest.raises(SerializationError):
        PAIRS[name][0].serialize("t", value, ())


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("boolean", b""),
        ("boolean", b"\x02"),
        ("boolean", b"\x00\x00"),
        ("double", b"\x00" * 7),
        ("float", b"\x00" * 8),
        ("integer", b""),
        ("integer", b"\x00" * 5),
        ("long", b"\x00" * 4),
        ("short", b"\x00"),
        ("uuid", b"00000000000000000000000000000001"),
        ("uuid", b"{0000000-0000-0000-0000-00000000001}"),
        ("uuid", b"\xff" * 36),
        ("uuid", b"urn:uuid:00000000-0000-0000-0000-00001"),
        ("void", b""),
    ],
)
def test_bytes_of_the_wrong_form_are_refused(name: str, data: bytes) -> None:
    with pytest.raises(SerializationError):
        PAIRS[name][1].deserialize("t", data, ())


def test_bytes_that_are_no_text_are_an_error_and_not_replaced() -> None:
    with pytest.raises(UnicodeDecodeError):
        StringDeserializer().deserialize("t", b"\xff", ())


def test_text_may_have_another_encoding() -> None:
    assert StringSerializer("utf-16-be").serialize("t", "a", ()) == b"\x00a"
    assert StringDeserializer("latin-1").deserialize("t", b"\xe9", ()) == "é"


def test_a_bytearray_is_copied_so_that_it_may_change_later() -> None:
    data = bytearray(b"abc")
    made = BytesSerializer().serialize("t", data, ())
    data[0] = 0
    assert made == b"abc"
    assert BytesSerializer().serialize("t", memoryview(b"xyz")[1:], ()) == b"yz"


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_long_comes_back(value: int) -> None:
    assert LongDeserializer().deserialize("t", LongSerializer().serialize("t", value, ()), ()) == value


@given(st.floats(allow_nan=True))
def test_every_double_comes_back(value: float) -> None:
    back = DoubleDeserializer().deserialize("t", DoubleSerializer().serialize("t", value, ()), ())
    assert back == value or (math.isnan(back) and math.isnan(value))


@given(st.text())
def test_every_text_comes_back(value: str) -> None:
    assert StringDeserializer().deserialize("t", StringSerializer().serialize("t", value, ()), ()) == value
