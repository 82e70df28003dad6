"""Records as columns: what `RecordReader.read_columns` returns.

The layouts are those of Apache Arrow, in the machine's order of bytes, so that they can be used there as they are.
"""

from __future__ import annotations

from array import array

import attrs

LARGEST_COLUMN = 2**31 - 1
"""Most bytes of one column's data: offsets into it have 32 bits."""


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
