"""gzip, with the leniency of Java's GZIPInputStream: members may follow each other, and garbage the last one."""

from __future__ import annotations

import zlib

from kclient.compress.errors import DecompressionError, too_large

_MAGIC = b"\x1f\x8b\x08"
_FIXED_HEADER = 10
_TRAILER = 8
# Java does not look for another member in fewer bytes.
_SMALLEST_MEMBER = 19
# Input is fed in pieces so that what follows a small member is not copied for each of very many members.
_PIECE = 32 * 1024

# Of the file name or comment of a member; a limit, because each member's is searched for its end.
_LONGEST_NAME = 4096

_FHCRC, _FEXTRA, _FNAME, _FCOMMENT = 2, 4, 8, 16


def compress(data: bytes | bytearray | memoryview, level: int, magic: int) -> bytes:  # noqa: ARG001
    """One gzip member."""
    return zlib.compress(data, level, wbits=31)


def decompress(data: memoryview, max_bytes: int, magic: int) -> tuple[bytes, DecompressionError | None]:  # noqa: ARG001
    """All members. zlib is given raw deflate data: header and trailer are judged here, as Java judges them."""
    pieces: list[bytes] = []
    pos = 0
    left = max_bytes
    error: DecompressionError | None = None
    while error is None:
        start = _header_end(data, pos)
        if start is None:
            if not pos:
                error = DecompressionError("The records are not in gzip format.")
            break
        try:
            pos, left, error = _member(data, start, left, pieces)
        except _TooLargeError:
            return b"", too_large(max_bytes)
        if len(data) - pos < _SMALLEST_MEMBER:
            break
    return b"".join(pieces), error


class _TooLargeError(Exception):
    pass


def _member(
    data: memoryview, pos: int, left: int, pieces: list[bytes]
) -> tuple[int, int, DecompressionError | None]:
    """Inflate one member into `pieces`: position after it, bytes that may still come, error."""
    inflater = zlib.decompressobj(-15)
    crc = size = 0
    while not inflater.eof:
        piece = data[pos : pos + _PIECE]
        if not piece:
            return pos, left, DecompressionError("The gzip data of the records is cut off.")
        try:
            # One byte more than may come tells a full buffer from one that is too small.
            out = inflater.decompress(piece, left + 1)
        except zlib.error as error:
            return pos, left, DecompressionError(f"The gzip data of the records is damaged: {error}")
        if len(out) > left:
            raise _TooLargeError
        pos += len(piece) - len(inflater.unused_data)
        left -= len(out)
        size += len(out)
        crc = zlib.crc32(out, crc)
        pieces.append(out)
    trailer = data[pos : pos + _TRAILER]
    if len(trailer) < _TRAILER:
        return pos, left, DecompressionError("The gzip data of the records is cut off.")
    pos += _TRAILER
    if (
        int.from_bytes(trailer[:4], "little") != crc
        or int.from_bytes(trailer[4:], "little") != size & 0xFFFFFFFF
    ):
        return pos, left, DecompressionError("The gzip checksum of the records does not match.")
    return pos, left, None


def _header_end(data: memoryview, pos: int) -> int | None:
    """Return the position of a member's deflate data; None if there is no gzip header at `pos`."""
    if len(data) - pos < _FIXED_HEADER or data[pos : pos + 3] != _MAGIC:
        return None
    flags = data[pos + 3]
    at = pos + _FIXED_HEADER
    if flags & _FEXTRA:
        at += 2 + int.from_bytes(data[at : at + 2], "little")
    for flag in (_FNAME, _FCOMMENT):
        if flags & flag:
            end = bytes(data[at : at + _LONGEST_NAME]).find(0)
            if end < 0:
                return None
            at += end + 1
    if flags & _FHCRC:
        expected = zlib.crc32(data[pos:at]) & 0xFFFF
        if int.from_bytes(data[at : at + 2], "little") != expected:
            return None
        at += 2
    return at if at <= len(data) else None
