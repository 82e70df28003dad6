"""OffsetIndex: from offsets to positions in the segment's file, one entry for every few kilobytes of log."""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right

from kclient.broker.log.abstract_index import AbstractIndex, Content, CorruptIndexError
from kclient.errors import InvalidOffsetError

_ENTRY = struct.Struct(">ii")


class OffsetIndex(AbstractIndex):
    """Entries (offset relative to the segment's base, position): the last offset of a batch and where it
    begins.
    """

    ENTRY_SIZE = 8

    __slots__ = ()

    @property
    def last_offset(self) -> int:
        """The offset of the last entry, the base offset if there is none."""
        count = self.entries
        return self.base_offset if count == 0 else self.entry(count - 1)[0]

    def entry(self, index: int) -> tuple[int, int]:
        """Offset and position of entry `index`."""
        relative, position = _ENTRY.unpack_from(self._view(), index * 8)
        return self.base_offset + relative, position

    def append(self, offset: int, position: int) -> None:
        """Add an entry; offsets rise. Raises `InvalidOffsetError` otherwise."""
        count = self.entries
        if count and offset <= self.last_offset:
            raise InvalidOffsetError(
                f"Offset {offset} for {self.path.name} is not above its last offset {self.last_offset}"
            )
        self._append(_ENTRY.pack(offset - self.base_offset, position))

    def lookup(self, offset: int) -> tuple[int, int]:
        """The entry with the greatest offset that is at most `offset`: (base offset, 0) if there is none."""
        found = self._search(offset)
        return (self.base_offset, 0) if found < 0 else self.entry(found)

    def upper_bound(self, position: int) -> int | None:
        """The offset of the first entry at or behind `position`: all records before that place are below it.

        None if the index does not reach that far.
        """
        view, count = self._view(), self.entries
        found = bisect_left(range(count), position, key=lambda i: _ENTRY.unpack_from(view, i * 8)[1])
        return None if found == count else self.entry(found)[0]

    def truncate_to(self, offset: int) -> None:
        """Drop the entries of `offset` and above. Raises OSError."""
        self._truncate_to_entries(self._search(offset - 1) + 1)

    def _search(self, offset: int) -> int:
        view, count = self._view(), self.entries
        relative = offset - self.base_offset
        return bisect_right(range(count), relative, key=lambda i: _ENTRY.unpack_from(view, i * 8)[0]) - 1

    def _validate_entries(self, view: Content) -> None:
        last_relative = last_position = -1
        for relative, position in _ENTRY.iter_unpack(view):
            if relative <= last_relative or position <= last_position:
                raise CorruptIndexError(f"{self.path.name} is out of order at relative offset {relative}")
            last_relative, last_position = relative, position
