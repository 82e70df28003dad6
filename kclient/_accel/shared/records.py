"""The records section of a batch of magic 2, decompressed, taken apart."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import attrs

from kclient._accel.shared.runs import Run, find_run
from kclient._accel.shared.types import Headers
from kclient._accel.shared.varint import read_varint, read_varlong

RawRecord = tuple[int, int, int, "bytes | None", "bytes | None", Headers]

Portion = Run | Iterator[RawRecord]

# So many records are decoded one by one before looking for a run again, and so many times more each time that there is
# none: what a look costs is noticed where there are none at all.
_SOME = 32
_TIMES_MORE = 8


def decode_records(data: bytes, count: int, error: BaseException | None = None) -> Iterator[RawRecord]:
    """The records in `data`, in order: size (without the length in front), timestamp delta, offset delta, key,
    value, headers. What is raised, and what for, is as in `decode_portions`.
    """
    return records_of(decode_portions(data, count, error))


def records_of(portions: Iterator[Portion]) -> Iterator[RawRecord]:
    """The records of all portions, one by one."""
    return chain.from_iterable(
        portion.records() if isinstance(portion, Run) else portion for portion in portions
    )


def decode_portions(data: bytes, count: int, error: BaseException | None = None) -> Iterator[Portion]:
    """The records in `data`, in order, in portions, of which each is to be read to its end before the next.

    `count` is what the batch's header claims. `data` may be only the beginning, if decompressing it failed with
    `error`: that is raised where the missing bytes are needed. As in Java's client, what is wrong after the last
    record is raised in place of the last record. Raises ValueError for everything malformed; nothing is allocated
    for sizes that the data cannot hold.
    """
    if count < 0:
        raise ValueError(f"the batch claims {count} records")
    decoder = _Decoder(data, count, error)
    some = _SOME
    # The last record is no part of a run if an error is to be raised in its place.
    in_runs = count if error is None else count - 1
    while decoder.index < count:
        run = find_run(data, decoder.pos, in_runs - decoder.index)
        if run is None:
            yield decoder.decode(min(decoder.index + some, count))
            some *= _TIMES_MORE
        else:
            decoder.index += run.count
            decoder.pos += run.count * run.stride
            yield run
            some = _SOME


@attrs.define
class _Decoder:
    """Takes records apart one by one; `index` is the number of the next one, at `pos`."""

    data: bytes
    count: int
    error: BaseException | None
    pos: int = 0
    index: int = 0

    def decode(self, stop: int) -> Iterator[RawRecord]:
        """The next records, up to number `stop`."""
        data = self.data
        error = self.error
        pos = self.pos
        last = self.count - 1
        # Hot: the varints of one and two bytes are read here, each of the six fields on its own. Slices that reach
        # beyond the data come out short; the comparison of positions at the record's end finds them all.
        end = len(data)
        try:
            for index in range(self.index, stop):
                raw = data[pos]
                pos += 1
                if raw >= 0x80:
                    byte = data[pos]
                    pos += 1
                    if byte < 0x80:
                        raw += (byte << 7) - 0x80
                    else:
                        raw, pos = read_varint(data, pos, raw & 0x7F | (byte & 0x7F) << 7, 14)
                size = raw >> 1
                frame_end = pos + size
                if raw & 1 or frame_end > end:
                    if raw & 1 or error is None:
                        raise ValueError(f"record {index} has an impossible size")
                    raise error

                raw = data[pos + 1]  # behind the attributes, of which none are defined
                pos += 2
                if raw >= 0x80:
                    byte = data[pos]
                    pos += 1
                    if byte < 0x80:
                        raw += (byte << 7) - 0x80
                    else:
                        raw, pos = read_varlong(data, pos, raw & 0x7F | (byte & 0x7F) << 7, 14)
                delta = ~(raw >> 1) if raw & 1 else raw >> 1

                raw = data[pos]
                pos += 1
                if raw >= 0x80:
                    byte = data[pos]
                    pos += 1
                    if byte < 0x80:
                        raw += (byte << 7) - 0x80
                    else:
                        raw, pos = read_varint(data, pos, raw & 0x7F | (byte & 0x7F) << 7, 14)
                offset = ~(raw >> 1) if raw & 1 else raw >> 1

                raw = data[pos]
                pos += 1
                if raw == 1:
                    key = None
                else:
                    if raw >= 0x80:
                        raw, pos = read_varint(data, pos, raw & 0x7F, 7)
                    if raw & 1:
                        key = None
                    else:
                        at = pos
                        pos += raw >> 1
                        key = data[at:pos]

                raw = data[pos]
                pos += 1
                if raw >= 0x80:
                    byte = data[pos]
                    pos += 1
                    if byte < 0x80:
                        raw += (byte << 7) - 0x80
                    else:
                        raw, pos = read_varint(data, pos, raw & 0x7F | (byte & 0x7F) << 7, 14)
                if raw & 1:
                    value = None
                else:
                    at = pos
                    pos += raw >> 1
                    value = data[at:pos]

                headers: Headers = ()
                if data[pos]:
                    headers, pos = _decode_headers(data, pos, frame_end)
                else:
                    pos += 1
                if pos != frame_end:
                    raise ValueError(f"record {index} does not end where its size says")
                if index == last:
                    if error is not None:
                        raise error
                    if pos != end:
                        raise ValueError(f"{end - pos} bytes follow the last record")
                yield size, delta, offset, key, value, headers
        except IndexError:
            if error is not None:
                raise error from error.__cause__
            raise ValueError(f"record {index} is cut off") from None
        self.pos = pos
        self.index = stop


def _decode_headers(data: bytes, pos: int, stop: int) -> tuple[Headers, int]:
    raw = data[pos]
    pos += 1
    if raw >= 0x80:
        raw, pos = read_varint(data, pos, raw & 0x7F, 7)
    if raw & 1 or raw >> 1 > stop - pos:
        raise ValueError("a record has an impossible number of headers")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(raw >> 1):
        raw = data[pos]
        pos += 1
        if raw >= 0x80:
            raw, pos = read_varint(data, pos, raw & 0x7F, 7)
        at = pos
        pos += raw >> 1
        if raw & 1 or pos > stop:
            raise ValueError("a header has an impossible size")
        name = data[at:pos].decode("utf-8", "replace")
        raw = data[pos]
        pos += 1
        if raw >= 0x80:
            raw, pos = read_varint(data, pos, raw & 0x7F, 7)
        if raw & 1:
            headers.append((name, None))
        else:
            at = pos
            pos += raw >> 1
            headers.append((name, data[at:pos]))
    return tuple(headers), pos
