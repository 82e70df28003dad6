"""snappy in the framing of snappy-java ("xerial"), and raw; read as Java's SnappyInputStream reads it."""

from __future__ import annotations

import snappy

from kclient.compress.errors import DecompressionError, too_large

_MAGIC = b"\x82SNAPPY\0"
_HEADER = _MAGIC + b"\0\0\0\1\0\0\0\1"
_BLOCK = 32 * 1024
_MIN_VERSION = 1
# Three bytes of snappy stand for at most 64.
_MAX_RATIO = 64 / 3
# Java hands records on in pieces of this size; what is damaged costs the piece it is in.
_READ_BYTES = 2048


def compress(data: bytes | bytearray | memoryview, level: int, magic: int) -> bytes:  # noqa: ARG001
    """The xerial header and blocks of 32 KiB, each with its length in front."""
    view = memoryview(data)
    parts = [_HEADER]
    for pos in range(0, len(view), _BLOCK):
        block = snappy.compress(view[pos : pos + _BLOCK])
        parts += (len(block).to_bytes(4, "big"), block)
    return b"".join(parts)


def decompress(data: memoryview, max_bytes: int, magic: int) -> tuple[bytes, DecompressionError | None]:  # noqa: ARG001
    """The blocks after a xerial header, or else all of `data` as one block."""
    if not data:
        return b"", DecompressionError("The snappy data of the records is empty.")
    pieces: list[bytes] = []
    try:
        if data[: len(_MAGIC)] != _MAGIC or len(data) < len(_HEADER):
            pieces.append(_block(data, max_bytes, max_bytes))
        else:
            _check_version(data)
            _blocks(data, len(_HEADER), max_bytes, pieces)
    except DecompressionError as error:
        if error.retriable:
            whole = b"".join(pieces)
            return whole[: len(whole) // _READ_BYTES * _READ_BYTES], error
        return b"", error
    return b"".join(pieces), None


def _blocks(data: memoryview, pos: int, max_bytes: int, pieces: list[bytes]) -> None:
    left = max_bytes
    while len(data) - pos >= 4:
        size = int.from_bytes(data[pos : pos + 4], "big")
        if data[pos : pos + 4] == _MAGIC[:4]:
            # Another stream was appended.
            header = data[pos : pos + len(_HEADER)]
            if len(header) < len(_HEADER):
                raise DecompressionError("The snappy data of the records is cut off.")
            if header[: len(_MAGIC)] != _MAGIC:
                return
            _check_version(header)
            pos += len(_HEADER)
            continue
        pos += 4
        if size > len(data) - pos:
            raise DecompressionError("The snappy data of the records is cut off.")
        piece = _block(data[pos : pos + size], left, max_bytes)
        pieces.append(piece)
        left -= len(piece)
        pos += size


def _check_version(header: memoryview) -> None:
    if int.from_bytes(header[8:12], "big", signed=True) < _MIN_VERSION:
        raise DecompressionError("The snappy data of the records has an incompatible version.")


def _block(block: memoryview, left: int, max_bytes: int) -> bytes:
    """One block; its claim of a size is checked before the library believes it."""
    size = shift = 0
    for byte in block[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    else:
        raise DecompressionError("The snappy data of the records is damaged.")
    if size > len(block) * _MAX_RATIO:
        raise DecompressionError(f"{len(block)} bytes of snappy data claim to stand for {size}.")
    if size > left:
        raise too_large(max_bytes)
    try:
        return snappy.uncompress(block)
    except snappy.UncompressError as error:
        raise DecompressionError(f"The snappy data of the records is damaged: {error}") from error
