"""TimeIndex: from timestamps to offsets, for finding where a log stood at a time."""

from __future__ import annotations

import struct
from bisect import bisect_right

from kclient.broker.log.abstract_index import AbstractIndex, Content, CorruptIndexError
from kclient.errors import IllegalStateError, InvalidOffsetError

_ENTRY = struct.Struct(">qi")

NO_TIMESTAMP = -1


class TimeIndex(AbstractIndex):
    """Entries (timestamp, relative offset): no record before that offset's batch has a greater timestamp."""

    ENTRY_SIZE = 12

    __slots__ = ()

    @property
    def is_full(self) -> bool:
        """True when only the place for the entry that is added on roll is left."""
        return self._size >= self.max_bytes - self.ENTRY_SIZE

    @property
    def last_entry(self) -> tuple[int, int]:
        """Timestamp and offset of the last entry, (-1, base offset) if there is none."""
        count = self.entries
        return (NO_TIMESTAMP, self.base_offset) if count == 0 else self.entry(count - 1)

    def entry(self, index: int) -> tuple[int, int]:
        """Timestamp and offset of entry `index`."""
        timestamp_ms, relative = _ENTRY.unpack_from(self._view(), index * 12)
        return timestamp_ms, self.base_offset + relative

    def maybe_append(self, timestamp_ms: int, offset: int) -> None:
        """Add an entry unless `timestamp_ms` is that of the last one.

        Raises `InvalidOffsetError` or `IllegalStateError` if the offset or the timestamp goes back.
        """
        last_timestamp_ms, last_offset = self.last_entry
        if self.entries:
            if offset < last_offset:
                raise InvalidOffsetError(
                    f"Offset {offset} for {self.path.name} is below its last offset {last_offset}"
                )
            if timestamp_ms < last_timestamp_ms:
                raise IllegalStateError(
                    f"Timestamp {timestamp_ms} for {self.path.name} is before its last, {last_timestamp_ms}"
                )
        if timestamp_ms > last_timestamp_ms:
            self._append(_ENTRY.pack(timestamp_ms, offset - self.base_offset))

    def lookup(self, timestamp_ms: int) -> tuple[int, int]:
        """The last entry that is not after `timestamp_ms`: (-1, base offset) if there is none."""
        view, count = self._view(), self.entries
        found = bisect_right(range(count), timestamp_ms, key=lambda i: _ENTRY.unpack_from(view, i * 12)[0])
        return (NO_TIMESTAMP, self.base_offset) if found == 0 else self.entry(found - 1)

    def truncate_to(self, offset: int) -> None:
        """Drop the entries of `offset` and above. Raises OSError."""
        view, count = self._view(), self.entries
        relative = offset - self.base_offset
        # Offsets do not go back either, so the same bisection serves for them.
        kept = bisect_right(range(count), relative - 1, key=lambda i: _ENTRY.unpack_from(view, i * 12)[1])
        self._truncate_to_entries(kept)

    def _validate_entries(self, view: Content) -> None:
        last_timestamp_ms = last_relative = -1
        for timestamp_ms, relative in _ENTRY.iter_unpack(view):
            if timestamp_ms <= last_timestamp_ms or relative < last_relative:
                raise CorruptIndexError(f"{self.path.name} is out of order at timestamp {timestamp_ms}")
            last_timestamp_ms, last_relative = timestamp_ms, relative
