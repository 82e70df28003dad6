"""Varints, sizes and arrays of numbers at the ends of their ranges and of the bytes; golden has the values of Java."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.errors import SchemaError
from kclient.protocol.wire import read_numbers, read_size, read_unsigned_varint, unsigned_varint


@given(st.integers(0, 0xFFFFFFFF), st.binary(max_size=3), st.binary(max_size=3))
def test_a_varint_is_read_back_wherever_it_stands(value: int, before: bytes, after: bytes) -> None:
    written = unsigned_varint(value)
    position = len(before) + len(written)
    assert read_unsigned_varint(before + written + after, len(before)) == (value, position)
    assert len(written) == max(1, -(-value.bit_length() // 7))


@pytest.mark.parametrize(
    ("value", "raw"),
    [(0, b"\0"), (127, b"\x7f"), (128, b"\x80\1"), (16_383, b"\xff\x7f"), (16_384, b"\x80\x80\1")],
)
def test_seven_bits_go_into_a_byte(value: int, raw: bytes) -> None:
    assert unsigned_varint(value) == raw


def test_a_negative_varint_stands_for_its_32_bits() -> None:
    assert unsigned_varint(-1) == unsigned_varint(0xFFFFFFFF) == b"\xff\xff\xff\xff\x0f"
    assert read_size(unsigned_varint(-1), 0) == (-1, 5)
    assert read_size(unsigned_varint(-(2**31)), 0) == (-(2**31), 5)
    assert read_size(unsigned_varint(2**31 - 1), 0) == (2**31 - 1, 5)


def test_bits_beyond_32_are_dropped_and_a_sixth_byte_is_refused() -> None:
    assert read_unsigned_varint(b"\xff\xff\xff\xff\x7f", 0) == (0xFFFFFFFF, 5)
    assert read_unsigned_varint(b"\x80\x80\x80\x80\x10", 0) == (0, 5)
    with pytest.raises(SchemaError, match="more than 5 bytes"):
        read_unsigned_varint(b"\x80\x80\x80\x80\x80\0", 0)


def test_a_varint_longer_than_it_needs_to_be_is_read() -> None:
    assert read_unsigned_varint(b"\x81\x80\0", 0) == (1, 3)


@pytest.mark.parametrize("read", [read_unsigned_varint, read_size])
@pytest.mark.parametrize("raw", [b"", b"\x80", b"\xff\xff\xff\xff"])
def test_a_varint_that_is_cut_off_is_the_end_of_the_bytes(
    read: Callable[[bytes, int], tuple[int, int]], raw: bytes
) -> None:
    with pytest.raises(IndexError):
        read(raw, 0)


@pytest.mark.parametrize("count", [0, 1, 64, 65, 1000])
@pytest.mark.parametrize(("code", "size"), [("b", 1), ("h", 2), ("H", 2), ("i", 4), ("I", 4), ("q", 8)])
def test_few_numbers_and_many_are_read_alike(code: str, size: int, count: int) -> None:
    bits = size * 8
    low, high = (0, 2**bits - 1) if code.isupper() else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    numbers = [(low, high, 1, 0)[i % 4] for i in range(count)]
    raw = b"?" + struct.pack(f">{count}{code}", *numbers) + b"behind"
    for buf in (raw, memoryview(raw)):
        assert read_numbers(code, size, buf, 1, count) == numbers


@pytest.mark.parametrize("count", [1, 64, 65, 1000])
def test_numbers_that_are_cut_off_are_refused_few_or_many(count: int) -> None:
    raw = bytes(4 * count)
    assert len(read_numbers("i", 4, raw, 0, count)) == count
    for position, buf in ((1, raw), (0, raw[:-1])):
        with pytest.raises(struct.error):
            read_numbers("i", 4, buf, position, count)
