"""ColumnBuilder: the reference body's way to make columns of records."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from itertools import accumulate, chain

from kclient._accel.shared.columns import LARGEST_COLUMN, BinaryColumn, Columns, HeaderColumns
from kclient._accel.shared.types import Headers

Sizes = tuple[int, int, int, int]
"""Bytes of keys, values, names of headers and their values."""

_INLINE = 12
_SHORT_VIEW = struct.Struct("=i12s")
_LONG_VIEW = struct.Struct("=i4sii")


def _validity(strings: Sequence[bytes | None]) -> tuple[int, bytes | None]:
    """The number of strings that are null, and the bitmap of the others."""
    nulls = strings.count(None)
    if not nulls:
        return 0, None
    bits = bytearray((len(strings) + 7) // 8)
    for index, string in enumerate(strings):
        if string is not None:
            bits[index >> 3] |= 1 << (index & 7)
    return nulls, bytes(bits)


def _ends(sizes: Sequence[int]) -> array[int]:
    return array("i", accumulate(sizes, initial=0))


def _copied(strings: Sequence[bytes | None]) -> BinaryColumn:
    nulls, validity = _validity(strings)
    found = [string or b"" for string in strings]
    return BinaryColumn(nulls, validity, _ends([len(each) for each in found]), None, (b"".join(found),))


class ColumnBuilder:
    """Collects records and makes columns of them: whoever has them appends to all the lists. Belongs to one thread."""

    def __init__(self, view: bool, column_bytes: int) -> None:
        self.inflated = 0
        """Bytes of the compressed batches that were read to their end."""
        self.offsets: list[int] = []
        self.timestamps: list[int] = []
        self.timestamp_types: list[int] = []
        self.keys: list[bytes | None] = []
        self.values: list[bytes | None] = []
        self.headers: list[Headers] = []
        self._view = view
        self._column_bytes = min(column_bytes, LARGEST_COLUMN)
        self._most = 0
        self._sizes: Sizes = (0, 0, 0, 0)
        self._sized = 0
        self._views = (bytearray(), bytearray())
        self._buffers: list[bytes] = []

    def __len__(self) -> int:
        return len(self.offsets)

    def fits(self, body_bytes: int) -> bool:
        """Return True if a whole batch with so many bytes of records fits; then none of them has to be asked about."""
        # Making the names of headers valid may triple them.
        self._most += 3 * body_bytes
        return self._most <= self._column_bytes

    def has_room(self, key: bytes | None, value: bytes | None, headers: Headers) -> bool:
        """Return True if a record can be added and no column becomes too long; only the first may make one too long.

        Raises ValueError for one that cannot be in a column at all.
        """
        sizes = self._sizes
        # Those that came without being asked about are added up now.
        for index in range(self._sized, len(self)):
            sizes = self._with(sizes, self.keys[index], self.values[index], self.headers[index])
        self._sizes, self._sized = sizes, len(self)
        longest = max(self._with(sizes, key, value, headers))
        if len(self):
            return longest <= self._column_bytes
        if longest > LARGEST_COLUMN:
            raise ValueError("the headers of a record are too long for a column")
        return True

    def _with(self, sizes: Sizes, key: bytes | None, value: bytes | None, headers: Headers) -> Sizes:
        keys, values, names, contents = sizes
        if not self._view:
            keys += len(key or b"")
            values += len(value or b"")
        for name, content in headers:
            names += len(name.encode())
            contents += len(content or b"")
        return keys, values, names, contents

    def end_batch(self, inflated: int) -> None:
        """No more records of this batch; decompressed it had `inflated` bytes."""
        self.inflated += inflated
        if self._view:
            self._make_views()

    def _make_views(self) -> None:
        """Views of the strings that came last. The long ones follow each other in a buffer of their own."""
        long: list[bytes] = []
        at = 0
        for strings, views in zip((self.keys, self.values), self._views, strict=True):
            for string in strings[len(views) // 16 :]:
                size = 0 if string is None else len(string)
                if size <= _INLINE:
                    views += _SHORT_VIEW.pack(size, string or b"")
                    continue
                assert string is not None
                if at + size > LARGEST_COLUMN:
                    self._buffers.append(b"".join(long))
                    long = []
                    at = 0
                views += _LONG_VIEW.pack(size, string[:4], len(self._buffers), at)
                long.append(string)
                at += size
        if long:
            self._buffers.append(b"".join(long))

    def build(self) -> Columns | None:
        """The columns; None without records."""
        if not len(self):
            return None
        if self._view:
            self._make_views()
            keys, values = (
                BinaryColumn(*_validity(strings), None, bytes(views), tuple(self._buffers))
                for strings, views in zip((self.keys, self.values), self._views, strict=True)
            )
        else:
            keys, values = _copied(self.keys), _copied(self.values)
        return Columns(
            len(self),
            array("q", self.offsets),
            array("q", self.timestamps),
            array("b", self.timestamp_types),
            keys,
            values,
            self._header_columns(),
        )

    def _header_columns(self) -> HeaderColumns | None:
        if not any(self.headers):
            return None
        headers = list(chain.from_iterable(self.headers))
        return HeaderColumns(
            _ends([len(each) for each in self.headers]),
            _copied([name.encode() for name, _ in headers]),
            _copied([value for _, value in headers]),
        )
