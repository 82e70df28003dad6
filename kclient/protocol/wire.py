"""The types of Kafka's wire format, as message declarations name them, and the varints below them.

A type says how a value looks in Python and in bytes; `codegen` turns declarations into code, so nothing here runs
per field except the two varint helpers, and those only for values of more than seven bits.
"""

from __future__ import annotations

import array
import struct
import sys

import attrs

from kclient.common.uuid import Uuid
from kclient.errors import SchemaError

__all__ = [
    "UUID",
    "Array",
    "Bool",
    "Bytes",
    "Float64",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "Records",
    "String",
    "UInt16",
    "UInt32",
    "WireType",
    "read_numbers",
    "read_size",
    "read_unsigned_varint",
    "unsigned_varint",
]


@attrs.frozen
class WireType:
    """A type that is not made of others.

    `code` is its letter in `struct`, None if its size varies; `size` is the least number of bytes it takes when not
    flexible.
    """

    name: str
    python: str
    default: object
    code: str | None
    size: int

    @property
    def nullable(self) -> bool:
        """True if the wire format has a null for it: only types with a length do."""
        return self.code is None


@attrs.frozen
class Array:
    """A list of values of one type, or of structs."""

    of: WireType | type


Bool = WireType("bool", "bool", default=False, code="?", size=1)
Int8 = WireType("int8", "int", default=0, code="b", size=1)
Int16 = WireType("int16", "int", default=0, code="h", size=2)
UInt16 = WireType("uint16", "int", default=0, code="H", size=2)
Int32 = WireType("int32", "int", default=0, code="i", size=4)
UInt32 = WireType("uint32", "int", default=0, code="I", size=4)
Int64 = WireType("int64", "int", default=0, code="q", size=8)
Float64 = WireType("float64", "float", default=0.0, code="d", size=8)
UUID = WireType("uuid", "Uuid", default=Uuid.ZERO, code="16s", size=16)
String = WireType("string", "str", default="", code=None, size=2)
Bytes = WireType("bytes", "bytes", default=b"", code=None, size=4)
Records = WireType("records", "bytes | memoryview", default=None, code=None, size=4)

_FEW = 64

VARINTS = tuple(bytes((n,)) for n in range(128))
"""The varints of one byte, which nearly all lengths are."""


def unsigned_varint(value: int) -> bytes:
    """`value` as an unsigned varint; a negative one stands for its 32 bits, as in Java."""
    value &= 0xFFFFFFFF
    if value < 128:
        return VARINTS[value]
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_unsigned_varint(buf: bytes | memoryview, pos: int) -> tuple[int, int]:
    """The unsigned varint at `pos` and the position after it.

    As in Java, bits beyond 32 are dropped and five bytes are the most. Raises IndexError at the end of `buf`.
    """
    value = shift = 0
    while True:
        byte = buf[pos]
        pos += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & 0xFFFFFFFF, pos
        shift += 7
        if shift > 28:
            raise SchemaError("A varint has more than 5 bytes")


def read_size(buf: bytes | memoryview, pos: int) -> tuple[int, int]:
    """The length at `pos` as a signed number, as Java takes it, and the position after it."""
    size, pos = read_unsigned_varint(buf, pos)
    if size > 0x7FFFFFFF:
        # Only a hostile or broken peer gets here. Java reads the length as a signed number: null, or an error.
        size -= 1 << 32
    return size, pos


def read_numbers(code: str, size: int, buf: bytes | memoryview, pos: int, count: int) -> list[int]:
    """`count` big-endian integers of `size` bytes from `pos` on."""
    if count <= _FEW:
        return list(struct.unpack_from(f">{count}{code}", buf, pos))
    # For many, a tuple of them in between would double the memory.
    if count * size > len(buf) - pos:
        raise struct.error("array of numbers is cut off")
    numbers = array.array(code, bytes(buf[pos : pos + count * size]))
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers.tolist()
