"""snappy with and without the framing of snappy-java."""

from __future__ import annotations

import tracemalloc

import pytest
import snappy as library

from kclient.compress import DecompressionError, DecompressionLimitError
from kclient.compress.snappy import compress, decompress

MIB = 1024 * 1024


def read(data: bytes, limit: int = MIB) -> tuple[bytes, DecompressionError | None]:
    return decompress(memoryview(data), limit, 2)


def test_blocks_have_32_kib() -> None:
    payload = compress(bytes(40_000), 0, 2)
    assert payload.startswith(b"\x82SNAPPY\0\0\0\0\1\0\0\0\1")
    first = int.from_bytes(payload[16:20], "big")
    assert len(library.uncompress(payload[20 : 20 + first])) == 32 * 1024


def test_a_block_that_lies_about_its_size_is_refused_before_anything_is_allocated() -> None:
    # A length of 2 GiB - 1 in five bytes of data (CVE-2023-34455, CVE-2023-43642).
    lie = b"\xff\xff\xff\xff\x07" + b"\0" * 5
    tracemalloc.start()
    try:
        for payload in (lie, compress(b"", 0, 2) + len(lie).to_bytes(4, "big") + lie):
            _, error = read(payload, 4096 * MIB)
            assert isinstance(error, DecompressionError)
            assert "claim" in str(error)
        assert tracemalloc.get_traced_memory()[1] < MIB
    finally:
        tracemalloc.stop()


def test_a_chunk_that_lies_about_its_length_is_refused() -> None:
    for size in (0x7FFFFFFF, 0xFFFFFFFF, 100):
        _, error = read(compress(b"", 0, 2) + size.to_bytes(4, "big") + b"abc")
        assert isinstance(error, DecompressionError)


def test_the_claim_of_a_block_is_held_against_the_limit() -> None:
    _, error = read(library.compress(bytes(5000)), 4999)
    assert isinstance(error, DecompressionLimitError)


@pytest.mark.parametrize("payload", [b"", b"\xff", b"\x80\x80\x80\x80\x80\x80"])
def test_a_length_that_does_not_end_is_refused(payload: bytes) -> None:
    _, error = read(payload)
    assert isinstance(error, DecompressionError)


def test_damage_costs_only_what_java_would_not_have_handed_on_either() -> None:
    good = compress(bytes(64 * 1024), 0, 2)
    found, error = read(good + (5).to_bytes(4, "big") + b"oops")
    assert error is not None
    assert found == bytes(64 * 1024)
    found, error = read(compress(bytes(3000), 0, 2) + (5).to_bytes(4, "big") + b"oops")
    assert error is not None
    assert found == bytes(2048)
