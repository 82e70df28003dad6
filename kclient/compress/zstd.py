"""zstd: any number of frames, skippable ones among them, and nothing else after them.

The frames and their blocks are walked before the library sees them. That finds what is cut off, and says how much a
frame can decompress to at most, so that neither a false claim nor an absent one costs memory.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import zstandard

from kclient.compress.errors import DecompressionError, too_large

_MAGIC = 0xFD2FB528
_SKIPPABLE, _SKIPPABLE_MASK = 0x184D2A50, 0xFFFFFFF0
_BLOCK_MAX = 128 * 1024
_RAW, _RLE, _RESERVED = 0, 1, 3
# Java hands records on in pieces of this size; what is damaged costs the piece it is in.
_READ_BYTES = 16 * 1024


class _Compressors(threading.local):
    """By level. A compressor has large tables, so it is kept; and it serves one thread at a time."""

    def __init__(self) -> None:
        self.by_level: dict[int, zstandard.ZstdCompressor] = {}


_compressors = _Compressors()


def compress(data: bytes | bytearray | memoryview, level: int, magic: int) -> bytes:  # noqa: ARG001
    """One frame that says how large its contents are."""
    by_level = _compressors.by_level
    compressor = by_level.get(level)
    if compressor is None:
        compressor = by_level[level] = zstandard.ZstdCompressor(level=level)
    return compressor.compress(data)


def decompress(data: memoryview, max_bytes: int, magic: int) -> tuple[bytes, DecompressionError | None]:  # noqa: ARG001
    """All frames."""
    pieces: list[bytes] = []
    left = max_bytes
    begin = 0
    try:
        for begin, end, largest in _frames(data):
            frame = data[begin:end]
            piece = _frame(frame, left, largest, max_bytes)
            left -= len(piece)
            pieces.append(piece)
            begin = end
    except DecompressionError as error:
        if not error.retriable:
            return b"", error
        pieces.append(_beginning(data[begin:], left))
        return b"".join(pieces), error
    return b"".join(pieces), None


def _frames(data: memoryview) -> Iterator[tuple[int, int, int]]:
    """Begin, end and an upper bound of the decompressed size of each frame with contents."""
    pos = 0
    while pos < len(data):
        magic = int.from_bytes(data[pos : pos + 4], "little")
        if magic & _SKIPPABLE_MASK == _SKIPPABLE:
            _need(data, pos + 8)
            end = pos + 8 + int.from_bytes(data[pos + 4 : pos + 8], "little")
            _need(data, end)
        elif magic == _MAGIC:
            end, largest = _walk_frame(data, pos)
            yield pos, end, largest
        else:
            raise DecompressionError("The records are not in zstd format.")
        pos = end


def _walk_frame(data: memoryview, pos: int) -> tuple[int, int]:
    """The end of the frame at `pos`, and the most it can decompress to."""
    _need(data, pos + 5)
    descriptor = data[pos + 4]
    single_segment = descriptor & 0x20
    size_bytes = (1 if single_segment else 0, 2, 4, 8)[descriptor >> 6]
    pos += 5 + (0 if single_segment else 1) + (0, 1, 2, 4)[descriptor & 3] + size_bytes
    largest = 0
    last = 0
    while not last:
        _need(data, pos + 3)
        header = int.from_bytes(data[pos : pos + 3], "little")
        last, kind, size = header & 1, header >> 1 & 3, header >> 3
        if kind == _RESERVED:
            raise DecompressionError("The zstd data of the records has a block of an unknown kind.")
        largest += min(size, _BLOCK_MAX) if kind in (_RAW, _RLE) else _BLOCK_MAX
        pos += 3 + (1 if kind == _RLE else size)
    pos += 4 if descriptor & 0x04 else 0
    _need(data, pos)
    return pos, largest


def _need(data: memoryview, end: int) -> None:
    if end > len(data):
        raise DecompressionError("The zstd data of the records is cut off.")


def _frame(frame: memoryview, left: int, largest: int, max_bytes: int) -> bytes:
    try:
        claimed = zstandard.get_frame_parameters(frame).content_size
        if claimed != zstandard.CONTENTSIZE_UNKNOWN:
            if claimed > largest:
                raise DecompressionError(
                    f"The zstd data of the records claims {claimed} bytes, which it cannot hold."
                )
            largest = claimed
            if claimed > left:
                raise too_large(max_bytes)
        if not largest:
            return b""
        return zstandard.ZstdDecompressor().decompress(frame, max_output_size=max(1, min(largest, left)))
    except zstandard.ZstdError as error:
        if left < largest:
            raise too_large(max_bytes) from error
        raise DecompressionError(f"The zstd data of the records is damaged: {error}") from error


def _beginning(data: memoryview, left: int) -> bytes:
    """Decompress the frame at the beginning of `data` up to its damage, or to `left` bytes."""
    pieces: list[bytes] = []
    with zstandard.ZstdDecompressor().stream_reader(bytes(data)) as reader:
        while left > 0:
            try:
                piece = reader.read(min(_READ_BYTES, left))
            except zstandard.ZstdError:
                break
            if not piece:
                break
            left -= len(piece)
            pieces.append(piece)
    return b"".join(pieces)
