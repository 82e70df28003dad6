"""Compression of record batches; the only package that imports compression libraries, and those at first use."""

from __future__ import annotations

from kclient.compress.codec import (
    LEVELS,
    CompressionType,
    compress,
    decompress,
    decompress_partly,
)
from kclient.compress.errors import DecompressionError, DecompressionLimitError

__all__ = [
    "LEVELS",
    "CompressionType",
    "DecompressionError",
    "DecompressionLimitError",
    "compress",
    "decompress",
    "decompress_partly",
]
