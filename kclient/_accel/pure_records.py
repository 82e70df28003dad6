"""The records section of a batch of magic 2, decompressed, taken apart."""

from __future__ import annotations

from collections.abc import Iterator

from kclient._accel.varint import read_varint, read_varlong

Headers = tuple[tuple[str, bytes | None], ...]
RawRecord = tuple[int, int, int, "bytes | None", "bytes | None", Headers]


def decode_records(data: bytes, count: int, error: BaseException | None = None) -> Iterator[RawRecord]:
    """The records in `data`, in order: size (without the length in front), timestamp delta, offset delta, key,
    value, headers.

    `count` is what the batch's header claims. `data` may be only the beginning, if decompressing it failed with
    `error`: that is raised where the missing bytes are needed. As in Java's client, what is wrong after the last
    record is raised in place of the last record. Raises ValueError for everything malformed; nothing is allocated
    for sizes that the data cannot hold.
    """
    if count < 0:
        raise ValueError(f"the batch claims {count} records")
    # Hot: the varints of one and two bytes are read here, each of the six fields on its own. Slices that reach
    # beyond the data come out short; the comparison of positions at the record's end finds them all.
    pos = 0
    end = len(data)
    last = count - 1
    try:
        for index in range(count):
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
            stop = pos + size
            if raw & 1 or stop > end:
                if raw & 1 or error is None:
                    raise ValueError(f"record {index} has an impossible size")
                raise error
            pos += 1  # attributes: none are defined

            raw = data[pos]
            pos += 1
            if raw >= 0x80:
                raw, pos = read_varlong(data, pos, raw & 0x7F, 7)
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
                headers, pos = _decode_headers(data, pos, stop)
            else:
                pos += 1
            if pos != stop:
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


def _decode_headers(data: bytes, pos: int, stop: int) -> tuple[Headers, int]:
    count, pos = read_varint(data, pos, 0, 0)
    if count & 1 or count >> 1 > stop - pos:
        raise ValueError("a record has an impossible number of headers")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count >> 1):
        raw, pos = read_varint(data, pos, 0, 0)
        at = pos
        pos += raw >> 1
        if raw & 1 or pos > stop:
            raise ValueError("a header has an impossible size")
        name = data[at:pos].decode("utf-8", "replace")
        raw, pos = read_varint(data, pos, 0, 0)
        if raw & 1:
            headers.append((name, None))
        else:
            at = pos
            pos += raw >> 1
            headers.append((name, data[at:pos]))
    return tuple(headers), pos
