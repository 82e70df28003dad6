"""lz4 frames as Kafka writes and reads them, which is stricter than the format in some points and laxer in others.

Blocks must be independent; only the first frame is read; a content checksum is not looked at; and in batches of
magic 0 the checksum of the header also covers the magic number, a mistake that became the format.
"""

from __future__ import annotations

import lz4.block
import lz4.frame

from kclient.compress.errors import DecompressionError, too_large

_MAGIC = b"\x04\x22\x4d\x18"
_SMALLEST_HEADER = 7
_VERSION = 1
_BLOCK_SIZES = {4: 1 << 16, 5: 1 << 18, 6: 1 << 20, 7: 1 << 22}
_STORED = 0x80000000
# Java uses its fast compressor at the default level, the high compression one otherwise, up to its highest level.
_DEFAULT_LEVEL = 9
_FAST = 0
_HIGHEST = 12
_MASK = 0xFFFFFFFF
_PRIME_1, _PRIME_2, _PRIME_3, _PRIME_4, _PRIME_5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393


def compress(data: bytes | bytearray | memoryview, level: int, magic: int) -> bytes:
    """One frame of independent 64 KiB blocks without checksums."""
    frame = lz4.frame.compress(
        data,
        compression_level=_FAST if level == _DEFAULT_LEVEL else min(level, _HIGHEST),
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    if magic:
        return frame
    return frame[:6] + bytes((_header_checksum(frame[:6]),)) + frame[7:]


def decompress(data: memoryview, max_bytes: int, magic: int) -> tuple[bytes, DecompressionError | None]:
    """The first frame."""
    pieces: list[bytes] = []
    try:
        pos, block_max, block_checksum, content_checksum = _read_header(data, magic)
        left = max_bytes
        while True:
            piece, pos = _read_block(data, pos, left, block_max, block_checksum, max_bytes)
            if piece is None:
                break
            if len(piece) > left:
                return b"", too_large(max_bytes)
            left -= len(piece)
            pieces.append(piece)
        if content_checksum and len(data) - pos < 4:
            raise DecompressionError("The lz4 data of the records is cut off.")
    except DecompressionError as error:
        return b"" if not error.retriable else b"".join(pieces), error
    return b"".join(pieces), None


def _read_header(data: memoryview, magic: int) -> tuple[int, int, bool, bool]:
    """Position of the first block, largest block, whether blocks and whether the content have checksums."""
    if len(data) < _SMALLEST_HEADER or data[:4] != _MAGIC:
        raise DecompressionError("The records are not in lz4 format.")
    flags, descriptor = data[4], data[5]
    block_max = _BLOCK_SIZES.get(descriptor >> 4)
    independent = flags & 0x20
    if flags >> 6 != _VERSION or flags & 0x03 or not independent or descriptor & 0x0F or block_max is None:
        raise DecompressionError("The lz4 data of the records has flags that Kafka does not use.")
    end = 6 + (8 if flags & 0x08 else 0)
    if len(data) <= end:
        raise DecompressionError("The lz4 data of the records is cut off.")
    # Writers of magic 0 disagree about the checksum, so that none is refused.
    if magic and data[end] != _header_checksum(data[4:end]):
        raise DecompressionError("The lz4 checksum of the records' header does not match.")
    return end + 1, block_max, bool(flags & 0x10), bool(flags & 0x04)


def _read_block(
    data: memoryview, pos: int, left: int, block_max: int, checksum: bool, max_bytes: int
) -> tuple[bytes | None, int]:
    """The block at `pos`, None for the end mark, and the position after it; hardly more than `left` is allocated."""
    if len(data) - pos < 4:
        raise DecompressionError("The lz4 data of the records is cut off.")
    word = int.from_bytes(data[pos : pos + 4], "little")
    if not word:
        return None, pos + 4
    size = word & ~_STORED
    end = pos + 4 + size + (4 if checksum else 0)
    if size > block_max or end > len(data):
        raise DecompressionError("The lz4 data of the records is cut off or has a block that is too large.")
    block = data[pos + 4 : pos + 4 + size]
    room = min(block_max, left + 1)
    if checksum:
        _check_block(data[pos:end])
    if word & _STORED:
        return bytes(block), end
    try:
        return lz4.block.decompress(block, uncompressed_size=room), end
    except lz4.block.LZ4BlockError as error:
        if room < block_max:
            raise too_large(max_bytes) from error
        raise DecompressionError(f"The lz4 data of the records is damaged: {error}") from error


def _check_block(block: memoryview) -> None:
    """Raise unless the checksum at the end of the block is right: the library checks it in a frame of one block."""
    descriptor = b"\x70\x70"
    frame = _MAGIC + descriptor + bytes((_header_checksum(descriptor),)) + bytes(block) + b"\0\0\0\0"
    try:
        lz4.frame.decompress(frame)
    except RuntimeError as error:
        raise DecompressionError(f"The lz4 data of the records is damaged: {error}") from error


def _header_checksum(header: bytes | memoryview) -> int:
    """The second byte of the header's XXH32: for inputs shorter than 16 bytes, as headers are."""
    value = (_PRIME_5 + len(header)) & _MASK
    whole = len(header) & ~3
    for pos in range(0, whole, 4):
        value = (value + int.from_bytes(header[pos : pos + 4], "little") * _PRIME_3) & _MASK
        value = _rotate(value, 17) * _PRIME_4 & _MASK
    for byte in header[whole:]:
        value = (value + byte * _PRIME_5) & _MASK
        value = _rotate(value, 11) * _PRIME_1 & _MASK
    value = (value ^ value >> 15) * _PRIME_2 & _MASK
    value = (value ^ value >> 13) * _PRIME_3 & _MASK
    return (value ^ value >> 16) >> 8 & 0xFF


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & _MASK
