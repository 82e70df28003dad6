"""gzip members as Java's GZIPInputStream reads them."""

from __future__ import annotations

import gzip as library
import time
import zlib

from kclient.compress import DecompressionError
from kclient.compress.gzip import compress, decompress

MIB = 1024 * 1024


def read(data: bytes, limit: int = MIB) -> tuple[bytes, DecompressionError | None]:
    return decompress(memoryview(data), limit, 2)


def member(data: bytes, flags: int = 0, extra: bytes = b"") -> bytes:
    header = b"\x1f\x8b\x08" + bytes((flags,)) + b"\0\0\0\0\0\xff" + extra
    deflater = zlib.compressobj(9, zlib.DEFLATED, -15)
    body = deflater.compress(data) + deflater.flush()
    return header + body + zlib.crc32(data).to_bytes(4, "little") + len(data).to_bytes(4, "little")


def test_others_can_read_what_is_written() -> None:
    assert library.decompress(compress(b"data", 9, 2)) == b"data"


def test_all_fields_of_a_header_are_passed() -> None:
    extra = b"\x03\x00abc" + b"name\0" + b"comment\0"
    head = b"\x1f\x8b\x08\x1e\0\0\0\0\0\xff" + extra
    with_crc = extra + (zlib.crc32(head) & 0xFFFF).to_bytes(2, "little")
    assert read(member(b"data", 0x1E, with_crc)) == (b"data", None)
    _, error = read(member(b"data", 0x1E, extra + b"??"))
    assert error is not None


def test_flags_that_gzip_reserves_are_ignored() -> None:
    assert read(member(b"data", 0xE0)) == (b"data", None)


def test_what_came_before_a_wrong_checksum_is_kept() -> None:
    payload = bytearray(member(b"data"))
    payload[-8] ^= 1
    found, error = read(bytes(payload))
    assert found == b"data"
    assert "checksum" in str(error)


def test_a_second_member_is_read_and_a_broken_one_is_an_error() -> None:
    assert read(member(b"one, ") + member(b"two")) == (b"one, two", None)
    found, error = read(member(b"one, ") + member(b"two" * 100)[:-9] + bytes(9))
    assert found.startswith(b"one, ")
    assert error is not None


def test_very_many_tiny_members_take_no_quadratic_time() -> None:
    payload = member(b"") * 50_000
    begin = time.perf_counter()
    assert read(payload) == (b"", None)
    assert time.perf_counter() - begin < 20
