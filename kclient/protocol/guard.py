"""Functions that generated codecs call for tags, bad sizes, and the memory budget against hostile bytes.

The messages of a broker or client are trusted with their contents, never with their sizes. Two rules hold while
decoding, for any bytes:

- a count or length is held against the bytes that are left before anything is allocated for it;
- every array pays for the objects it will make from a budget made of the input's length (`budget`), so the cheapest
  elements (a struct of three bytes becomes an object of a hundred) cannot turn a large frame into a far larger heap.

The measure of the budget: honest messages need up to 18 bytes of empty objects for a byte of input (CreatePartitions
with assignments to single brokers, OffsetDelete; metadata 11), and the cheapest elements of a hostile one would need
60. Contents (strings, numbers) come on top; they are not charged, because Python's own sizes bound them.
"""

from __future__ import annotations

import functools
import struct

from kclient.common.uuid import Uuid
from kclient.errors import SchemaError, UnsupportedVersionError
from kclient.protocol.schema import Structure
from kclient.protocol.wire import Array, WireType, read_size, unsigned_varint

MAX_EMPTY = 1_000_000
"""The most elements of an array whose elements take no bytes at all."""
MAX_TAGS = 10_000
"""The most tagged fields of one struct."""
TAG_COST = 96
"""Bytes a tagged field may take besides its contents: its share of a dict, and its number."""
BUDGET_RATIO = 24
"""Bytes of empty objects that a byte of input may ask for: above all honest messages, below the hostile ones."""
BUDGET_SLACK = 8 * 1024
"""Bytes of empty objects that any input may ask for, however short."""

_SLOT = 8
_OBJECT = 32
_LIST = 56


def budget(size: int) -> int:
    """Return the number of bytes of objects that an input of `size` bytes may ask for."""
    return size * BUDGET_RATIO + BUDGET_SLACK


def cost(element: WireType | type[Structure]) -> int:
    """Bytes that one element of an array takes in memory before it has any contents."""
    if isinstance(element, WireType):
        return _SLOT
    total = _SLOT + _OBJECT + _SLOT * (len(element.FIELDS) + 1)
    for field in element.FIELDS:
        if isinstance(field.kind, Array):
            total += _LIST
        elif not isinstance(field.kind, WireType) and field.default is not None:
            total += cost(field.kind)
    return total


def over_budget() -> SchemaError:
    return SchemaError("The message asks for far more objects than its bytes can be meant for")


def bad_size(name: str, size: int, left: int) -> SchemaError:
    return SchemaError(f"Size {size} of {name} cannot be: {left} bytes are left")


def bad_count(name: str, count: int, left: int) -> SchemaError:
    return SchemaError(f"{count} elements of {name} cannot be: {left} bytes are left")


def bad_tag(name: str, tag: int) -> SchemaError:
    return SchemaError(f"The size of tagged field {tag} ({name}) is not that of its contents")


def lacks_field(name: str, version: int) -> UnsupportedVersionError:
    return UnsupportedVersionError(f"{name} is set, but version {version} does not have it")


def lacks_tags(name: str, version: int) -> UnsupportedVersionError:
    return UnsupportedVersionError(f"{name} has tagged fields, but version {version} does not support them")


@functools.lru_cache(maxsize=1024)
def uuid(raw: bytes) -> Uuid:
    """The Uuid of 16 bytes; shared, since it is most often the one of zeros or that of a topic seen before."""
    if len(raw) != 16:
        raise SchemaError(f"A Uuid is cut off after {len(raw)} bytes")
    return Uuid(raw) if any(raw) else Uuid.ZERO


def write_numbers(code: str, numbers: list[int]) -> bytes:
    return struct.pack(f">{len(numbers)}{code}", *numbers)


def write_tags(
    out: bytearray, known: list[tuple[int, bytearray]] | None, unknown: dict[int, bytes] | None, own: int
) -> None:
    """Append the tagged fields: `known` ones in order, then `unknown` ones, whose tags must be `own` or more."""
    tags: list[tuple[int, bytes | bytearray]] = [*(known or ())]
    if unknown:
        tags += sorted(unknown.items())
        if min(unknown) < own:
            raise SchemaError(f"Tag {min(unknown)} is a field of the message, not an unknown tagged field")
    out += unsigned_varint(len(tags))
    for tag, value in tags:
        out += unsigned_varint(tag)
        out += unsigned_varint(len(value))
        out += value


def read_tag_count(buf: bytes | memoryview, pos: int) -> tuple[int, int]:
    """The number of tagged fields at `pos`, one of more than a byte, and the position after it."""
    count, pos = read_size(buf, pos)
    if not 0 <= count <= MAX_TAGS:
        raise SchemaError(f"A struct cannot have {count} tagged fields")
    return count, pos


def read_tag(buf: bytes | memoryview, pos: int, end: int, last: int) -> tuple[int, int, int]:
    """A tag, which must be above the `last` one, and where its value begins and ends."""
    tag, pos = read_size(buf, pos)
    if tag <= last:
        raise SchemaError(f"Tag {tag} follows tag {last}")
    size, pos = read_size(buf, pos)
    if not 0 <= size <= end - pos:
        raise bad_size(f"tagged field {tag}", size, end - pos)
    return tag, pos, pos + size


def read_unknown_tags(
    buf: bytes | memoryview, pos: int, end: int, count: int
) -> tuple[dict[int, bytes], int]:
    """`count` tagged fields, none of which is known, and the position after them."""
    if count * 2 > end - pos:
        raise bad_count("tagged fields", count, end - pos)
    unknown: dict[int, bytes] = {}
    tag = -1
    for _ in range(count):
        tag, pos, stop = read_tag(buf, pos, end, tag)
        unknown[tag] = bytes(buf[pos:stop])
        pos = stop
    return unknown, pos
