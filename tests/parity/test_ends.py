"""Both bodies find the end of fetched batches in the same place, whatever the bytes are."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.golden import golden_lines
from kclient._accel.reference.batch_end import end_of_batches

native = pytest.importorskip("kclient._accel.native.reader", reason="the native body is not built")

HEADER = struct.Struct(">qiibIhi")
"""Base offset, length of what follows the length, leader epoch, magic, CRC, attributes, last offset delta."""

headers = st.builds(
    lambda base, length, magic, delta, rest: HEADER.pack(base, length, 0, magic, 0, 0, delta) + rest,
    st.integers(-(2**63), 2**63 - 1),
    st.one_of(st.integers(10, 40), st.integers(-(2**31), 2**31 - 1)),
    st.one_of(st.integers(-1, 3), st.integers(-128, 127)),
    st.one_of(st.integers(-2, 5), st.integers(-(2**31), 2**31 - 1)),
    st.binary(max_size=20),
)


@given(st.lists(headers, max_size=4).map(b"".join), st.integers(0, 40))
def test_any_headers_end_alike(data: bytes, cut: int) -> None:
    data = data[: max(len(data) - cut, 0)]
    assert native.end_of_batches(memoryview(data)) == end_of_batches(memoryview(data))


@pytest.mark.golden
def test_golden_batches_end_alike_wherever_they_are_cut() -> None:
    batches = [bytes.fromhex(line["hex"]) for line in golden_lines("record_batches")][:40]
    for data in (*batches, b"".join(batches)):
        for size in {*range(0, len(data), 7), *range(min(len(data), 64)), len(data)}:
            piece = memoryview(data)[:size]
            assert native.end_of_batches(piece) == end_of_batches(piece)


def test_the_largest_offset_has_a_successor_in_both() -> None:
    body = HEADER.pack(2**63 - 1, 15, 0, 2, 0, 0, 2**31 - 1)
    assert native.end_of_batches(body) == end_of_batches(body) == 2**63 + 2**31 - 1
