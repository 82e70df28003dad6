"""Errors of the decompression of a batch."""

from __future__ import annotations

from kclient.errors import CorruptRecordError


class DecompressionError(CorruptRecordError):
    """Compressed records are cut off or damaged. `partial` is what came out before that."""

    partial: bytes = b""
    default_message = "The compressed records are damaged."


class DecompressionLimitError(DecompressionError):
    """Compressed records are larger than `max_bytes`, decompressed; nothing was allocated beyond that."""

    retriable = False
    max_bytes: int = -1
    default_message = "The decompressed records are too large; raise kclient.decompress.max.bytes."


def too_large(max_bytes: int) -> DecompressionLimitError:
    """The error for records that would decompress to more than `max_bytes`."""
    return DecompressionLimitError(
        f"The records of a batch decompress to more than {max_bytes} bytes; "
        "raise kclient.decompress.max.bytes if they are meant to be that large.",
        max_bytes=max_bytes,
    )
