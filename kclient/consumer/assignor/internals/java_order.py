"""The order in which Java goes through the keys of a HashMap."""

from __future__ import annotations

import struct
from collections.abc import Collection

_LEAST_CAPACITY = 16


def hash_map_order(keys: Collection[str]) -> list[str]:
    """Sort keys, given in the order in which they are put in, as a Java program finds them."""
    capacity = _LEAST_CAPACITY
    while len(keys) > capacity * 3 // 4:
        capacity *= 2
    return sorted(keys, key=lambda key: _spread(_hash_code(key)) & (capacity - 1))


def _hash_code(text: str) -> int:
    """The hashCode of a String, without its sign."""
    encoded = text.encode("utf-16-be", "surrogatepass")
    code = 0
    for unit in struct.unpack(f">{len(encoded) // 2}H", encoded):
        code = (31 * code + unit) & 0xFFFFFFFF
    return code


def _spread(code: int) -> int:
    return code ^ (code >> 16)
