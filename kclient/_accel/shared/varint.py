"""Zigzag varints, as the fields of a record of magic 2 are written."""

from __future__ import annotations


def zigzag(value: int) -> bytes:
    """`value`, a signed 64-bit integer, as a zigzag varint."""
    rest = (value << 1) ^ (value >> 63)
    if rest < 0x80:
        return bytes((rest,))
    out = bytearray()
    while rest >= 0x80:
        out.append((rest & 0x7F) | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def zigzag_size(value: int) -> int:
    """The number of bytes that `zigzag(value)` has."""
    return max(1, (((value << 1) ^ (value >> 63)).bit_length() + 6) // 7)


def wrapped(number: int) -> int:
    """`number` as 64 bits hold it: times add up as they do in Java."""
    return (number + 2**63 & 2**64 - 1) - 2**63


def read_varint(data: bytes, pos: int, raw: int, shift: int) -> tuple[int, int]:
    """The rest of an unsigned 32-bit varint whose first groups are in `raw` already: value and position after it.

    Raises IndexError at the end of the data, ValueError for a varint of more than five bytes.
    """
    while True:
        byte = data[pos]
        pos += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return raw & 0xFFFFFFFF, pos
        shift += 7
        if shift > 28:
            raise ValueError("a varint has more than 5 bytes")


def read_varlong(data: bytes, pos: int, raw: int, shift: int) -> tuple[int, int]:
    """As `read_varint`, for 64 bits and up to ten bytes."""
    while True:
        byte = data[pos]
        pos += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return raw & 0xFFFFFFFFFFFFFFFF, pos
        shift += 7
        if shift > 63:
            raise ValueError("a varlong has more than 10 bytes")
