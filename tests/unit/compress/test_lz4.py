"""lz4 frames as Kafka knows them."""

from __future__ import annotations

import tracemalloc

import lz4.frame as library
import pytest

from kclient.compress import DecompressionError, DecompressionLimitError
from kclient.compress.lz4 import compress, decompress

MIB = 1024 * 1024


def read(data: bytes, magic: int = 2, limit: int = MIB) -> tuple[bytes, DecompressionError | None]:
    return decompress(memoryview(data), limit, magic)


def test_frames_have_independent_blocks_of_64_kib_and_no_checksums() -> None:
    info = library.get_frame_info(compress(b"data" * 100_000, 9, 2))  # type: ignore[attr-defined]
    assert (info["block_size"], info["block_linked"]) == (65_536, False)
    assert not info["content_checksum"]
    assert not info["block_checksum"]
    assert info["content_size"] == 0


def test_only_magic_0_has_the_broken_header_checksum() -> None:
    assert compress(b"data", 9, 1) == compress(b"data", 9, 2)
    assert compress(b"data", 9, 0) != compress(b"data", 9, 2)
    for magic in (0, 1, 2):
        assert read(compress(b"data", 9, magic), magic) == (b"data", None)


def test_higher_levels_compress_better_than_the_default_one() -> None:
    data = b"".join(b"%d %d," % (n, n * n) for n in range(20_000))
    assert len(compress(data, 17, 2)) < len(compress(data, 9, 2))


@pytest.mark.parametrize("block_size", [4, 5, 6, 7])
def test_frames_of_others_with_block_checksums_are_checked(block_size: int) -> None:
    data = b"0123456789" * 50_000
    frame = library.compress(data, block_size=block_size, block_linked=False, block_checksum=True)
    assert read(frame) == (data, None)
    broken = bytearray(frame)
    broken[-5] ^= 1
    found, error = read(bytes(broken))
    assert error is not None
    assert data.startswith(found)


def test_blocks_before_the_damage_are_kept() -> None:
    frame = compress(b"0123456789" * 20_000, 9, 2)
    found, error = read(frame[:-10])
    assert error is not None
    assert len(found) == 3 * 65_536


def test_a_block_of_4_mib_is_not_unpacked_for_a_smaller_limit() -> None:
    frame = library.compress(bytes(4 * MIB), block_size=7, block_linked=False)
    tracemalloc.start()
    try:
        _, error = read(frame, limit=1000)
        assert tracemalloc.get_traced_memory()[1] < MIB
    finally:
        tracemalloc.stop()
    assert isinstance(error, DecompressionLimitError)


def test_a_block_may_not_decompress_to_more_than_the_frame_allows() -> None:
    big = library.compress(bytes(200_000), block_size=7, block_linked=False, store_size=False)
    frame = compress(b"x", 9, 2)[:7] + big[7:]
    _, error = read(frame)
    assert isinstance(error, DecompressionError)
