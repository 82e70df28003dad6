"""Behaviour that all codecs have in common."""

from __future__ import annotations

import sys
import tracemalloc

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kclient.compress import (
    LEVELS,
    CompressionType,
    DecompressionError,
    DecompressionLimitError,
    compress,
    decompress,
    decompress_partly,
)
from kclient.errors import CorruptRecordError, UnsupportedCompressionTypeError

MIB = 1024 * 1024
REAL = [codec for codec in CompressionType if codec is not CompressionType.NONE]
PAYLOADS = st.binary(max_size=5000) | st.binary(min_size=1, max_size=9).map(lambda piece: piece * 20_000)


@pytest.mark.parametrize("codec", CompressionType)
@given(data=PAYLOADS, magic=st.integers(0, 2))
@settings(max_examples=40)
def test_what_is_compressed_comes_back(codec: CompressionType, data: bytes, magic: int) -> None:
    assert decompress(codec, compress(codec, memoryview(data), magic=magic), len(data), magic) == data


@pytest.mark.parametrize("codec", REAL)
def test_every_level_can_be_used(codec: CompressionType) -> None:
    data = b"some data, some more data, " * 100
    levels = LEVELS.get(codec)
    assert (levels is None) == (codec is CompressionType.SNAPPY)
    if levels is not None:
        for level in {levels.lowest, levels.default, levels.highest, 1, 2, 9}:
            assert decompress(codec, compress(codec, data, level), 10_000) == data


def test_levels_and_defaults_are_those_of_java() -> None:
    assert {codec: levels.default for codec, levels in LEVELS.items()} == {
        CompressionType.GZIP: -1,
        CompressionType.LZ4: 9,
        CompressionType.ZSTD: 3,
    }
    for codec, level in (
        (CompressionType.GZIP, -1),
        (CompressionType.LZ4, 17),
        (CompressionType.ZSTD, -131072),
    ):
        assert level in LEVELS[codec]


@pytest.mark.parametrize(
    ("codec", "level", "named"),
    [
        (CompressionType.GZIP, 0, r"compression\.gzip\.level must be 1 to 9 or -1, not 0"),
        (CompressionType.LZ4, 18, r"compression\.lz4\.level must be 1 to 17, not 18"),
        (CompressionType.ZSTD, 23, r"compression\.zstd\.level"),
        (CompressionType.SNAPPY, 1, "snappy has no compression levels"),
    ],
)
def test_a_level_that_does_not_exist_is_named(codec: CompressionType, level: int, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        compress(codec, b"", level)


def test_codecs_are_found_by_name_and_number() -> None:
    assert [CompressionType.for_id(n).label for n in range(5)] == ["none", "gzip", "snappy", "lz4", "zstd"]
    assert CompressionType.for_name("lz4") is CompressionType.LZ4
    with pytest.raises(ValueError, match="'brotli' is not one of none, gzip"):
        CompressionType.for_name("brotli")
    for number in (5, 6, 7):
        with pytest.raises(UnsupportedCompressionTypeError, match=str(number)):
            CompressionType.for_id(number)


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "kclient.compress.snappy", raising=False)
    monkeypatch.setitem(sys.modules, "snappy", None)
    with pytest.raises(UnsupportedCompressionTypeError, match="snappy"):
        compress(CompressionType.SNAPPY, b"data")


def test_libraries_are_imported_at_first_use() -> None:
    import subprocess

    program = (
        "import kclient.compress, sys; print([m for m in ('snappy', 'lz4', 'zstandard') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize("codec", REAL)
def test_the_limit_is_met_exactly(codec: CompressionType) -> None:
    data = b"0123456789" * 20_000
    payload = compress(codec, data)
    assert decompress(codec, payload, len(data)) == data
    for limit in (0, 1, 65_536, len(data) - 1):
        with pytest.raises(
            DecompressionLimitError, match=rf"{limit} bytes; raise kclient\.decompress\.max\.bytes"
        ):
            decompress(codec, payload, limit)


def test_uncompressed_records_have_the_same_limit() -> None:
    assert decompress(CompressionType.NONE, b"abc", 3) == b"abc"
    with pytest.raises(DecompressionLimitError):
        decompress(CompressionType.NONE, b"abc", 2)


def test_damage_is_a_corrupt_record_and_a_size_beyond_the_limit_is_not_worth_a_retry() -> None:
    assert issubclass(DecompressionLimitError, DecompressionError)
    assert issubclass(DecompressionError, CorruptRecordError)
    assert DecompressionError.retriable
    assert not DecompressionLimitError.retriable


@pytest.mark.parametrize("codec", REAL)
@given(data=st.data())
@settings(max_examples=200)
def test_damaged_data_never_raises_anything_else(codec: CompressionType, data: st.DataObject) -> None:
    payload = bytearray(compress(codec, b"some data, some more data, " * 300))
    for _ in range(data.draw(st.integers(1, 4))):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(payload)))
    found, error = decompress_partly(codec, bytes(payload[:cut]), MIB)
    assert error is None or error.partial == found
    assert len(found) <= MIB


@pytest.mark.parametrize("codec", REAL)
@given(data=st.binary(max_size=300))
@settings(max_examples=200)
def test_garbage_never_raises_anything_else(codec: CompressionType, data: bytes) -> None:
    headers = {
        CompressionType.GZIP: b"\x1f\x8b\x08",
        CompressionType.SNAPPY: b"\x82SNAPPY\0\0\0\0\1\0\0\0\1",
        CompressionType.LZ4: bytes.fromhex("04224d18604082"),
        CompressionType.ZSTD: bytes.fromhex("28b52ffd"),
    }
    for payload in (data, headers[codec] + data):
        decompress_partly(codec, payload, MIB)


def bomb(codec: CompressionType, size: int) -> bytes:
    return compress(codec, bytes(size), {CompressionType.GZIP: 9}.get(codec))


@pytest.mark.parametrize("codec", REAL)
def test_a_bomb_costs_no_more_memory_than_the_limit_twice(codec: CompressionType) -> None:
    payload = bomb(codec, 256 * MIB)
    limit = 16 * MIB
    process = psutil.Process()
    before = process.memory_info().rss
    tracemalloc.start()
    try:
        with pytest.raises(DecompressionLimitError):
            decompress(codec, payload, limit)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= 2 * limit + 64 * 1024
    assert process.memory_info().rss - before <= 2 * limit


@pytest.mark.parametrize("codec", REAL)
def test_data_of_just_the_limit_costs_no_more_memory_than_twice_that(codec: CompressionType) -> None:
    size = 32 * MIB
    payload = bomb(codec, size)
    tracemalloc.start()
    try:
        assert len(decompress(codec, payload, size)) == size
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= 2 * size + MIB
