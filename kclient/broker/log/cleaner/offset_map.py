"""OffsetMap: the last offset of each key in the dirty part of a log."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import md5
from itertools import repeat
from operator import ge

import attrs

BYTES_PER_KEY = 216
"""Memory for one key: what stands for it (64 bytes), the offset (32), its share of a dict that has just grown (120)."""

_HASH_SIZE = 16
_LONGEST_AS_IT_IS = 31  # takes no more memory than a hash


@attrs.define(eq=False)
class OffsetMap:
    """Maps keys to offsets, long keys by their hash, so that all need the same memory. Belongs to one thread.

    As in Kafka, long keys with the same MD5 are taken for one: nobody meets two by accident.
    """

    capacity: int
    """Keys that it takes."""
    latest_offset: int = attrs.field(default=-1, init=False)
    """It knows the last record of each key up to here; -1 if it is empty."""
    _offsets: dict[bytes | None, int] = attrs.field(factory=dict, init=False)

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
        known = self._offsets
        if len(known) + len(keys) <= self.capacity:
            known.update(zip(_stand_ins(keys), offsets, strict=True))
            known.pop(None, None)
            return True
        for key, offset in zip(_stand_ins(keys), offsets, strict=True):
            if key is None:
                continue
            if len(known) == self.capacity and key not in known:
                return False
            known[key] = self.latest_offset = offset
        return True

    def find_last(self, keys: Sequence[bytes | None], offsets: Sequence[int]) -> list[bool] | None:
        """Return for each record if it is the last of its key, as far as the map knows; None if all are.

        Those behind `latest_offset` are, others without a key never.
        """
        last = list(map(self._offsets.get, _stand_ins(keys), repeat(-1)))
        if None in keys:
            behind = self.latest_offset + 1
            last = [behind if key is None else offset for key, offset in zip(keys, last, strict=True)]
        if all(map(ge, offsets, last)):
            return None
        return list(map(ge, offsets, last))


def _stand_ins(keys: Sequence[bytes | None]) -> list[bytes | None]:
    """Return what stands for each key: the key itself if it is short, else its hash.

    One that is as long as a hash is hashed too, or somebody could give it that of another key.
    """
    return [
        key
        if key is None or (len(key) <= _LONGEST_AS_IT_IS and len(key) != _HASH_SIZE)
        else md5(key, usedforsecurity=False).digest()
        for key in keys
    ]
