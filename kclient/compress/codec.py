"""The codecs by name and number, their levels (KIP-390), and the two functions that use them."""

from __future__ import annotations

from enum import IntEnum
from importlib import import_module
from typing import Protocol, cast

import attrs

from kclient.compress.errors import DecompressionError, too_large
from kclient.errors import UnsupportedCompressionTypeError

Buffer = bytes | bytearray | memoryview


class CompressionType(IntEnum):
    """A codec; the value is its number in the attributes of a batch."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @classmethod
    def for_name(cls, name: str) -> CompressionType:
        """The codec that `compression.type` calls `name`. Raises ValueError if there is none."""
        try:
            return _BY_NAME[name]
        except KeyError:
            raise ValueError(f"compression type {name!r} is not one of {', '.join(_BY_NAME)}") from None

    @classmethod
    def for_id(cls, number: int) -> CompressionType:
        """The codec with this number. Raises UnsupportedCompressionTypeError if there is none."""
        try:
            return cls(number)
        except ValueError:
            raise UnsupportedCompressionTypeError(f"Compression type {number} is not known.") from None

    @property
    def label(self) -> str:
        """The name as `compression.type` has it: in lower case."""
        return self.name.lower()


_BY_NAME = {codec.name.lower(): codec for codec in CompressionType}


class _Codec(Protocol):
    """The functions of each codec's module."""

    def compress(self, data: Buffer, level: int, magic: int) -> bytes:
        """`data` as the Java client would frame it in a batch of this magic."""

    def decompress(
        self, data: memoryview, max_bytes: int, magic: int
    ) -> tuple[bytes, DecompressionError | None]:
        """Return the data up to the first damage, and the error that ended it early, None if nothing did.

        Raises DecompressionLimitError beyond `max_bytes`.
        """


@attrs.frozen
class LevelRange:
    """The levels of a codec: `lowest` to `highest`, and `default`, which need not lie between them."""

    lowest: int
    highest: int
    default: int

    def __contains__(self, level: object) -> bool:
        return isinstance(level, int) and (level == self.default or self.lowest <= level <= self.highest)


LEVELS = {
    CompressionType.GZIP: LevelRange(1, 9, -1),
    CompressionType.LZ4: LevelRange(1, 17, 9),
    CompressionType.ZSTD: LevelRange(-131072, 22, 3),
}
"""The levels of the codecs that have any."""


def _module(codec: CompressionType) -> _Codec:
    try:
        return cast(_Codec, import_module(f"kclient.compress.{codec.label}"))
    except ImportError as error:
        raise UnsupportedCompressionTypeError(
            f"{codec.label} needs the package {error.name}, which is not installed."
        ) from error


def compress(codec: CompressionType, data: Buffer, level: int | None = None, magic: int = 2) -> bytes:
    """The records section of a batch of this magic, compressed as Java's client does it.

    Raises ValueError that names the setting for a level the codec does not have.
    """
    if codec is CompressionType.NONE:
        return bytes(data)
    levels = LEVELS.get(codec)
    if level is None:
        level = 0 if levels is None else levels.default
    elif levels is None:
        raise ValueError(f"{codec.label} has no compression levels")
    elif level not in levels:
        extra = "" if levels.lowest <= levels.default <= levels.highest else f" or {levels.default}"
        raise ValueError(
            f"compression.{codec.label}.level must be {levels.lowest} to {levels.highest}{extra}, not {level}"
        )
    return _module(codec).compress(data, level, magic)


def decompress(codec: CompressionType, data: Buffer, max_bytes: int, magic: int = 2) -> bytes:
    """Return `data` decompressed. Reads what Java's client reads.

    Raises DecompressionError (a CorruptRecordError) for damaged data, and its subclass DecompressionLimitError
    if there would be more than `max_bytes`: it is raised before more than that is allocated.
    """
    found, error = decompress_partly(codec, data, max_bytes, magic)
    if error is not None:
        raise error
    return found


def decompress_partly(
    codec: CompressionType, data: Buffer, max_bytes: int, magic: int = 2
) -> tuple[bytes, DecompressionError | None]:
    """As `decompress`, but damage in the middle is returned, along with what Java's client would read before it."""
    view = memoryview(data)
    if codec is CompressionType.NONE:
        if len(view) > max_bytes:
            return b"", too_large(max_bytes)
        return bytes(view), None
    found, error = _module(codec).decompress(view, max_bytes, magic)
    if error is not None:
        error.partial = found
    return found, error
