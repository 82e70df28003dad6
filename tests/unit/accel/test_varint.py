"""Zigzag varints."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient._accel.shared.varint import read_varint, read_varlong, zigzag, zigzag_size


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_long_comes_back(value: int) -> None:
    encoded = zigzag(value)
    raw, end = read_varlong(b"?" + encoded, 1, 0, 0)
    assert (raw >> 1 ^ -(raw & 1), end) == (value, len(encoded) + 1)
    assert zigzag_size(value) == len(encoded)


@given(st.integers(-(2**31), 2**31 - 1))
def test_every_int_comes_back(value: int) -> None:
    raw, _ = read_varint(zigzag(value), 0, 0, 0)
    assert raw >> 1 ^ -(raw & 1) == value


@pytest.mark.parametrize(("read", "longest"), [(read_varint, 5), (read_varlong, 10)])
def test_a_varint_is_neither_endless_nor_cut_off(read: object, longest: int) -> None:
    assert callable(read)
    with pytest.raises(ValueError, match=f"more than {longest} bytes"):
        read(b"\xff" * 20, 0, 0, 0)
    with pytest.raises(IndexError):
        read(b"\xff" * (longest - 1), 0, 0, 0)
    raw, end = read(b"\xff" * (longest - 1) + b"\x7f", 0, 0, 0)
    assert end == longest
    assert raw < 2 ** (32 if longest == 5 else 64)
