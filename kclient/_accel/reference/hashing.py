"""CRC-32C of a batch and murmur2 of a key."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from kclient._accel.shared.types import Buffer

Crc = Callable[[Buffer, int], int]


def hardware_crc32c() -> Crc:
    """CRC-32C of the crc32c package, which uses the processor's instruction. Raises ImportError without it."""
    from crc32c import crc32c as function

    # 0 keeps the GIL: taking it back from a busy thread costs far longer than the checksum of a batch.
    return lambda buf, crc: function(buf, crc, 0)


def portable_crc32c() -> Crc:
    """CRC-32C of crcmod, which runs everywhere."""
    from crcmod.predefined import mkPredefinedCrcFun

    return mkPredefinedCrcFun("crc-32c")


@cache
def _best_crc32c() -> Crc:
    """Return the best there is. Chosen at first use: the native body never asks, and the packages load slowly."""
    try:
        return hardware_crc32c()
    except ImportError:
        return portable_crc32c()


def crc32c(buf: Buffer, crc: int = 0) -> int:
    """CRC-32C (Castagnoli) of `buf`, unsigned; `crc` is that of the bytes before it."""
    return _best_crc32c()(buf, crc)


_M = 0x5BD1E995
_SEED = 0x9747B28C


def murmur2(data: bytes) -> int:
    """The 32-bit murmur2 hash by which Kafka's default partitioner places keys, as Java's signed int."""
    length = len(data)
    h = _SEED ^ length
    body = length & ~3
    for i in range(0, body, 4):
        k = (int.from_bytes(data[i : i + 4], "little") * _M) & 0xFFFFFFFF
        k = ((k ^ (k >> 24)) * _M) & 0xFFFFFFFF
        h = ((h * _M) & 0xFFFFFFFF) ^ k
    if body != length:
        h = ((h ^ int.from_bytes(data[body:], "little")) * _M) & 0xFFFFFFFF
    h = ((h ^ (h >> 13)) * _M) & 0xFFFFFFFF
    h ^= h >> 15
    return h - 0x100000000 if h & 0x80000000 else h
