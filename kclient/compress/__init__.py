"""Compression of record batches; the only package that imports compression libraries, and those at first use."""

from __future__ import annotations

from kclient.compress.codec import (
    CompressionType,
    check_level,
    compress,
    decompress,
    decompress_partly,
    default_level,
    level_range,
)
from kclient.compress.errors import DecompressionError, DecompressionLimitError

__all__ = [
    "CompressionType",
    "DecompressionError",
    "DecompressionLimitError",
    "check_level",
    "compress",
    "decompress",
    "decompress_partly",
    "default_level",
    "level_range",
]
