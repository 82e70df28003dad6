"""zstd frames."""

from __future__ import annotations

import tracemalloc

import pytest
import zstandard

from kclient.compress import DecompressionError, DecompressionLimitError
from kclient.compress.zstd import compress, decompress

MIB = 1024 * 1024


def read(data: bytes, limit: int = MIB) -> tuple[bytes, DecompressionError | None]:
    return decompress(memoryview(data), limit, 2)


def streamed(data: bytes, level: int = 3) -> bytes:
    """As Java writes it: a frame that does not say how large its contents are."""
    writer = zstandard.ZstdCompressor(level=level).compressobj()
    return writer.compress(data) + writer.flush()


@pytest.mark.parametrize("size", [0, 1, 1000, 131_072, 131_073, 500_000])
def test_frames_with_and_without_a_size_are_read(size: int) -> None:
    data = b"0123456789"[: size % 10 + 1] * size
    data = data[:size]
    assert read(streamed(data)) == (data, None)
    assert read(compress(data, 3, 2)) == (data, None)
    assert read(compress(data, 3, 2) + streamed(data)) == (data + data, None)


def test_a_frame_that_claims_more_than_its_blocks_can_hold_is_refused_before_anything_is_allocated() -> None:
    # Single segment, eight bytes of size: 1 TiB, and one raw block of one byte.
    lie = bytes.fromhex("28b52ffde0") + (1 << 40).to_bytes(8, "little") + bytes.fromhex("09000041")
    tracemalloc.start()
    try:
        _, error = read(lie, 1 << 41)
        assert tracemalloc.get_traced_memory()[1] < MIB
    finally:
        tracemalloc.stop()
    assert isinstance(error, DecompressionError)
    assert not isinstance(error, DecompressionLimitError)


def test_a_tiny_frame_costs_no_buffer_of_the_size_of_the_limit() -> None:
    payload = streamed(b"tiny")
    tracemalloc.start()
    try:
        assert read(payload, 1 << 30) == (b"tiny", None)
        assert tracemalloc.get_traced_memory()[1] < MIB
    finally:
        tracemalloc.stop()


def test_what_came_before_the_damage_is_kept() -> None:
    data = b"".join(b"%d," % n for n in range(100_000))
    one_frame_cut = streamed(data) + streamed(data)[:9]
    found, error = read(one_frame_cut)
    assert error is not None
    assert found == data
    found, error = read(streamed(data) + b"garbage")
    assert error is not None
    assert found == data
    found, error = read(streamed(data)[:-5000])
    assert error is not None
    assert found
    assert data.startswith(found)


def test_large_windows_are_read() -> None:
    data = bytes(range(256)) * 5000
    assert read(streamed(data, 22), 2 * MIB) == (data, None)


def test_a_block_of_a_reserved_kind_is_refused() -> None:
    _, error = read(bytes.fromhex("28b52ffd2001070000"))
    assert "unknown kind" in str(error)
