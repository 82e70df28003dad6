"""OffsetMap: the last offset of each key in the dirty part of a log."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import md5
from itertools import repeat
from operator import ge

import attrs

BYTES_PER_KEY = 216
"""Memory for one key: the hash (64 bytes), the offset (32), and its share of a dict that has just grown (120)."""


@attrs.define(eq=False)
class OffsetMap:
    """Maps hashes of keys to offsets, so that long keys need no more memory than short ones. Belongs to one thread.

    As in Kafka, keys with the same MD5 are taken for one: nobody meets two by accident.
    """

    capacity: int
    """Keys that it takes."""
    latest_offset: int = attrs.field(default=-1, init=False)
    """It knows the last record of each key up to here; -1 if it is empty."""
    _offsets: dict[bytes, int] = attrs.field(factory=dict, init=False)

    @classmethod
    def of_size(cls, memory_bytes: int, load_factor: float) -> OffsetMap:
        """Make a map that fills at most the share `load_factor` of `memory_bytes`."""
        return cls(int(memory_bytes // BYTES_PER_KEY * load_factor))

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def utilization(self) -> float:
        """The share of its capacity that is in use."""
        return len(self) / self.capacity

    def clear(self) -> None:
        """Forget everything, and give the memory back."""
        self._offsets = {}
        self.latest_offset = -1

    def put_all(self, keys: Sequence[bytes | None], offsets: Sequence[int]) -> bool:
        """Note records, in order of their offsets, those without a key aside; False if not all had room.

        `latest_offset` is then that of the last that had.
        """
        hashes = [None if key is None else _hash(key) for key in keys]
        known = self._offsets
        if len(known) + len(hashes) <= self.capacity:
            known.update(zip(hashes, offsets, strict=True))  # type: ignore[arg-type]
            known.pop(None, None)  # type: ignore[call-overload]
            return True
        for hashed, offset in zip(hashes, offsets, strict=True):
            if hashed is None:
                continue
            if len(known) == self.capacity and hashed not in known:
                return False
            known[hashed] = self.latest_offset = offset
        return True

    def find_last(self, keys: Sequence[bytes | None], offsets: Sequence[int]) -> list[bool] | None:
        """Return for each record if it is the last of its key, as far as the map knows; None if all are.

        Those behind `latest_offset` are, others without a key never.
        """
        known = self._offsets
        if None in keys:
            latest = self.latest_offset
            return [
                offset > latest if key is None else offset >= known.get(_hash(key), -1)
                for key, offset in zip(keys, offsets, strict=True)
            ]
        found = list(map(known.get, [_hash(key) for key in keys if key is not None], repeat(-1)))
        if all(map(ge, offsets, found)):
            return None
        return list(map(ge, offsets, found))


def _hash(key: bytes) -> bytes:
    return md5(key, usedforsecurity=False).digest()
