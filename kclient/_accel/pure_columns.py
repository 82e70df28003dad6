"""Records as columns: what `RecordReader.read_columns` returns, and how the pure body builds it.

The layouts are those of Apache Arrow, in the machine's order of bytes, so that they can be used there as they are.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from itertools import accumulate, chain

import attrs

from kclient._accel.pure_records import Headers

LARGEST_COLUMN = 2**31 - 1
"""Most bytes of one column's data: offsets into it have 32 bits."""

_INLINE = 12
_SHORT_VIEW = struct.Struct("=i12s")
_LONG_VIEW = struct.Struct("=i4sii")


@attrs.frozen(eq=False)
class BinaryColumn:
    """Byte strings, some of which may be null. Immutable; every buffer has the buffer protocol and is read-only.

    `validity` has a bit for each string, the least significant first, 0 for null; None if there is no null. Copied
    strings lie one after the other in `data[0]`, string i from `offsets[i]` to `offsets[i + 1]` (int32); `views` is
    None. Otherwise `offsets` is None and `views` has 16 bytes for each string: its size (int32), and then all of it
    up to 12 bytes; of a longer one its first four bytes, which of `data` it lies in and where (int32 both).
    """

    null_count: int
    validity: bytes | bytearray | memoryview | None
    offsets: bytes | bytearray | memoryview | array[int] | None
    views: bytes | bytearray | memoryview | None
    data: tuple[bytes | bytearray | memoryview, ...]


@attrs.frozen(eq=False)
class HeaderColumns:
    """The headers of all records: those of record i are `offsets[i]` to `offsets[i + 1]` (int32). Immutable.

    Both columns are copied. Names are valid UTF-8, with U+FFFD for what was not, and never null.
    """

    offsets: bytes | bytearray | memoryview | array[int]
    names: BinaryColumn
    values: BinaryColumn


@attrs.frozen(eq=False)
class Columns:
    """`count` records of one partition, in order. Immutable.

    `offsets` and `timestamps` (ms, -1 for none) are int64, `timestamp_types` int8: 0 for the producer's time, 1 for
    the broker's, -1 for none. `headers` is None if no record has any.
    """

    count: int
    offsets: bytes | bytearray | memoryview | array[int]
    timestamps: bytes | bytearray | memoryview | array[int]
    timestamp_types: bytes | bytearray | memoryview | array[int]
    keys: BinaryColumn
    values: BinaryColumn
    headers: HeaderColumns | None


def _validity(strings: Sequence[bytes | None]) -> tuple[int, bytes | None]:
    """How many strings are null, and the bitmap of the others."""
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
    """Collects records and makes columns of them. Belongs to one thread."""

    def __init__(self, view: bool, column_bytes: int) -> None:
        self.inflated = 0
        """Bytes of the compressed batches that were read to their end."""
        self._view = view
        self._column_bytes = min(column_bytes, LARGEST_COLUMN)
        self._offsets: list[int] = []
        self._timestamps: list[int] = []
        self._types: list[int] = []
        self._keys: list[bytes | None] = []
        self._values: list[bytes | None] = []
        self._headers: list[Headers] = []
        self._sizes = [0, 0, 0, 0]
        # Views: the long strings of a batch follow each other in a buffer of their own.
        self._long: list[bytes] = []
        self._long_size = 0
        self._buffers: list[bytes] = []
        self._views = (bytearray(), bytearray())

    def __len__(self) -> int:
        return len(self._offsets)

    def add(
        self,
        offset: int,
        timestamp_ms: int,
        timestamp_type: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
    ) -> bool:
        """Take a record; False if it would make a column too long, unless it is the first."""
        sizes = self._sizes
        more = [sizes[0] + len(key or b""), sizes[1] + len(value or b""), sizes[2], sizes[3]]
        if self._view:
            more[0] = more[1] = 0
        for name, header in headers:
            more[2] += len(name.encode())
            more[3] += len(header or b"")
        if max(more) > self._column_bytes:
            if max(more) > LARGEST_COLUMN and not len(self):
                raise ValueError("the headers of a record are too long for a column")
            if len(self):
                return False
        self._sizes = more
        self._offsets.append(offset)
        self._timestamps.append(timestamp_ms)
        self._types.append(timestamp_type)
        self._keys.append(key)
        self._values.append(value)
        self._headers.append(headers)
        if self._view:
            self._views[0].extend(self._view_of(key or b""))
            self._views[1].extend(self._view_of(value or b""))
        return True

    def _view_of(self, string: bytes) -> bytes:
        if len(string) <= _INLINE:
            return _SHORT_VIEW.pack(len(string), string)
        if self._long_size + len(string) > LARGEST_COLUMN:
            self._end_buffer()
        at = self._long_size
        self._long.append(string)
        self._long_size += len(string)
        return _LONG_VIEW.pack(len(string), string[:4], len(self._buffers), at)

    def end_batch(self, inflated: int) -> None:
        """No more records of this batch; decompressed it had `inflated` bytes."""
        self.inflated += inflated
        self._end_buffer()

    def _end_buffer(self) -> None:
        if self._long:
            self._buffers.append(b"".join(self._long))
            self._long = []
            self._long_size = 0

    def build(self) -> Columns | None:
        """The columns; None without records."""
        if not len(self):
            return None
        self._end_buffer()
        columns = (self._keys, self._values)
        if self._view:
            keys, values = (
                BinaryColumn(*_validity(strings), None, bytes(views), tuple(self._buffers))
                for strings, views in zip(columns, self._views, strict=True)
            )
        else:
            keys, values = map(_copied, columns)
        return Columns(
            len(self),
            array("q", self._offsets),
            array("q", self._timestamps),
            array("b", self._types),
            keys,
            values,
            self._header_columns(),
        )

    def _header_columns(self) -> HeaderColumns | None:
        if not any(self._headers):
            return None
        headers = list(chain.from_iterable(self._headers))
        return HeaderColumns(
            _ends([len(each) for each in self._headers]),
            _copied([name.encode() for name, _ in headers]),
            _copied([value for _, value in headers]),
        )
