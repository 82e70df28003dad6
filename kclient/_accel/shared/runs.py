"""Runs: records that are written alike, read together.

What a producer writes at one go often differs in nothing but contents: the sizes are the same, and with them the place
of every field. Where that is so, a look along each byte that is not contents replaces taking the records apart, and
the contents are cut out in C: that takes a tenth of the time.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, Any

import attrs

from kclient._accel.shared.varint import read_varint, read_varlong, wrapped

if TYPE_CHECKING:
    from kclient._accel.shared.records import RawRecord

FEWEST = 8
"""The records of a run; looking for fewer costs as much as they do one by one."""

# Offset deltas count up. What their first and second bytes are then in one record after the other, for varints of one,
# two and three bytes; a third byte stays the same for a period.
_PERIOD = 1 << 13
_FIRST = bytes(range(0x80, 0x100, 2)) * (_PERIOD // 64)
_SECOND = b"".join(bytes((group,)) * 64 for group in range(0x80, 0x100))
_LAST = b"".join(bytes((group,)) * 64 for group in range(0x80))
_COUNTING = {1: (bytes(range(0, 0x80, 2)),), 2: (_FIRST, _LAST), 3: (_FIRST, _SECOND)}

_CONTINUED = bytes(range(0x80, 0x100))


@attrs.define(eq=False)
class Run:
    """Records of one size without headers, whose offsets follow each other. Used up as it is read."""

    offset: int
    """Offset delta of the next record."""
    count: int
    """Records that are left."""
    stride: int
    """Bytes of each; `size` is without the length in front."""
    size: int
    key_size: int
    """Bytes of each key, -1 for null; `keys` has what is left of them."""
    value_size: int
    keys: Iterator[bytes | None]
    values: Iterator[bytes | None]
    # Timestamp deltas: as they are written, and what that means.
    _codes: Iterator[Any]
    _deltas: dict[Any, int]

    def timestamps(self, base_ms: int) -> Iterator[int]:
        """The times of those that are left."""
        times = {code: wrapped(base_ms + delta) for code, delta in self._deltas.items()}
        if len(times) == 1:
            return repeat(*times.values())
        return map(times.__getitem__, self._codes)

    def largest_timestamp(self, base_ms: int) -> int:
        """The largest of all times."""
        return max(wrapped(base_ms + delta) for delta in self._deltas.values())

    def taken(self, count: int) -> None:
        """`count` records were read: as many keys, values and, of records with different ones, timestamps."""
        self.offset += count
        self.count -= count

    def skip(self, count: int) -> None:
        """Leave the next `count` records out."""
        for each in (self.keys, self.values, self._codes):
            next(islice(each, count, count), None)
        self.taken(count)

    def records(self) -> Iterator[RawRecord]:
        """Those that are left, one by one."""
        deltas = map(self._deltas.__getitem__, self._codes)
        offsets = range(self.offset, self.offset + self.count)
        return zip(repeat(self.size), deltas, offsets, self.keys, self.values, repeat(()))


def find_run(data: bytes, pos: int, most: int) -> Run | None:
    """The run that begins at `pos`; None if none does.

    It ends before record `most`, unless that is the last of the data as well. Its records are not malformed.
    """
    if most < FEWEST:
        return None
    try:
        raw = data[pos]
        body = pos + 1
        if raw >= 0x80:
            raw, body = read_varint(data, body, raw & 0x7F, 7)
        stride = body - pos + (raw >> 1)
        count = min(most, (len(data) - pos) // stride)
        if count == most and pos + count * stride != len(data):
            count -= 1
        if count < FEWEST or raw & 1:
            return None
        if data[pos : pos + FEWEST * stride : stride].lstrip(data[pos : pos + 1]):
            return None  # at little cost, where sizes vary
        times_at = body + 1
        raw_delta, offsets_at = read_varlong(data, times_at, 0, 0)
        raw_offset, key_at = read_varint(data, offsets_at, 0, 0)
        raw_key, key_start = read_varint(data, key_at, 0, 0)
        key_size = -1 if raw_key & 1 else raw_key >> 1
        value_at = key_start + max(key_size, 0)
        raw_value, value_start = read_varint(data, value_at, 0, 0)
        value_size = -1 if raw_value & 1 else raw_value >> 1
        headers_at = value_start + max(value_size, 0)
        if headers_at + 1 != pos + stride or data[headers_at]:
            return None
    except (IndexError, ValueError):
        return None

    offset = raw_offset >> 1
    counting = _COUNTING.get(key_at - offsets_at)
    if counting is None:
        return None
    phase = offset % _PERIOD
    # No longer than offset deltas can count up: of many short runs each would look at all that is left otherwise.
    count = min(count, len(counting[0]) - phase)
    uniform = (
        *range(pos, body),
        *range(offsets_at + len(counting), key_start),
        *range(value_at, value_start),
        headers_at,
    )
    for at in uniform:
        column = data[at : pos + count * stride : stride]
        if column != column[:1] * count:
            count -= len(column.lstrip(column[:1]))
    for at, expected in enumerate(counting, offsets_at):
        while data[at : pos + count * stride : stride] != expected[phase : phase + count]:
            count //= 2
    if count < FEWEST:
        return None
    stop = pos + count * stride
    codes: Iterator[Any]
    columns = [data[at:stop:stride] for at in range(times_at, offsets_at)]
    if all(column == column[:1] * count for column in columns):
        codes, deltas = repeat(0, count), {0: _signed(raw_delta)}
    elif columns[-1].isascii() and not any(column.translate(None, _CONTINUED) for column in columns[:-1]):
        written: Sequence[Any] = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
        places = dict(zip(written, range(times_at, stop, stride), strict=True))
        codes = iter(written)
        deltas = {code: _signed(read_varlong(data, at, 0, 0)[0]) for code, at in places.items()}
    else:
        return None
    frames = memoryview(data)[pos:stop]
    return Run(
        offset,
        count,
        stride,
        stride - (body - pos),
        key_size,
        value_size,
        _contents(frames, stride, key_start - pos, key_size),
        _contents(frames, stride, value_start - pos, value_size),
        codes,
        deltas,
    )


def _signed(raw: int) -> int:
    return ~(raw >> 1) if raw & 1 else raw >> 1


def _contents(frames: memoryview, stride: int, start: int, size: int) -> Iterator[bytes | None]:
    """The `size` bytes from `start` on in each of the frames."""
    if size < 0:
        return repeat(None)
    return chain.from_iterable(struct.iter_unpack(f"{start}x{size}s{stride - start - size}x", frames))
