"""Both bodies compute the same checksums and hashes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient._accel import reference

native = pytest.importorskip("kclient._accel.native", reason="the native body is not built")


@given(st.binary(max_size=300), st.integers(0, 2**32 - 1))
def test_both_hashes_agree(data: bytes, before: int) -> None:
    assert native.crc32c(data, before) == reference.crc32c(data, before)
    assert native.crc32c(memoryview(data)[1:]) == reference.crc32c(memoryview(data)[1:])
    assert native.murmur2(data) == reference.murmur2(data)


def test_long_data_has_the_same_checksum() -> None:
    data = bytes(range(256)) * 300
    for size in (767, 768, 769, 12287, 12288, 12289, 50_001, len(data)):
        assert native.crc32c(data[:size]) == reference.crc32c(data[:size])
