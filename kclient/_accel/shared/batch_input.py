"""Input of many records at once, as both bodies of a batch take it: the checks, which cost nothing per record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import index

from kclient._accel.shared.types import Buffer

MAX_TIMESTAMP_MS = 2**63 - 1
MAX_RECORD_BYTES = 2**31 - 1

Column = tuple[Buffer, Buffer, "Buffer | None", int]
"""Byte strings as in Arrow's binary and large_binary: offsets (n + 1 int32 or int64), data, validity bitmap (a bit for
each, the least significant first; None if none is null) and the number of the first bit in that."""

CheckedColumn = tuple[memoryview, memoryview, "memoryview | None", int]
Row = tuple[int, "bytes | None", "bytes | None"]


def given_timestamp(timestamp_ms: int) -> int:
    """The timestamp that a caller gave. TypeError for what is no int, otherwise as `check_timestamp`."""
    number = int(index(timestamp_ms))
    check_timestamp(number, 0)
    return number


def check_timestamp(timestamp_ms: int, base_ms: int) -> None:
    """Raise ValueError for a timestamp that a record cannot have in a batch that begins at `base_ms`."""
    if not -1 <= timestamp_ms <= MAX_TIMESTAMP_MS or timestamp_ms - base_ms > MAX_TIMESTAMP_MS:
        raise ValueError(f"a timestamp must be in ms since the epoch, or -1 for none, not {timestamp_ms}")


def check_content(content: object, name: str) -> None:
    """Raise TypeError for what is not bytes or None."""
    if content is not None and not isinstance(content, bytes):
        raise TypeError(f"{name} must be bytes or None, not {type(content).__name__}")


def check_headers(headers: Sequence[tuple[str, bytes | None]]) -> None:
    """Raise TypeError for headers that are not pairs of str and bytes."""
    for name, content in headers:
        if not isinstance(name, str):
            raise TypeError(f"the name of a header must be a str, not {type(name).__name__}")
        if content is not None and not isinstance(content, bytes):
            raise TypeError(f"the value of a header must be bytes or None, not {type(content).__name__}")


def too_large() -> ValueError:
    """The error for a record that the format cannot hold."""
    return ValueError(f"a record cannot have more than {MAX_RECORD_BYTES} bytes")


def unfit(attributes: int, producer_id: int, producer_epoch: int, base_sequence: int) -> ValueError:
    """The error for numbers that a batch's header has no room for."""
    return ValueError(
        f"the header of a batch cannot hold producer id {producer_id}, epoch {producer_epoch}, sequence "
        f"{base_sequence} and attributes {attributes}"
    )


def check_many(keys: object, values: object, start: int, stop: int) -> None:
    """Raise TypeError or ValueError if `values[start:stop]`, and `keys` beside them, are not there to be taken."""
    for given, name in ((keys, "keys"), (values, "values")):
        if given is None and name == "keys":
            continue
        if not isinstance(given, (list, tuple)):
            raise TypeError(f"{name} must be a list or a tuple, not {type(given).__name__}")
        _check_range(start, stop, len(given), name)


def _check_range(start: int, stop: int, count: int, name: str) -> None:
    if not 0 <= start <= stop <= count:
        raise ValueError(f"records {start} to {stop} were to be taken, and there are {count} {name}")


def checked_timestamps(timestamps: Buffer, start: int, stop: int) -> memoryview:
    """The timestamps, which have to be int64."""
    view = memoryview(timestamps)
    if view.format not in ("l", "q") or view.itemsize != 8 or not view.c_contiguous or view.ndim != 1:
        raise TypeError(f"timestamps must be a buffer of int64, not of format {view.format!r}")
    _check_range(start, stop, len(view), "timestamps")
    return view


def checked_column(column: Column, name: str, start: int, stop: int) -> CheckedColumn:
    """The column's buffers as flat memoryviews of what they should hold, for records `start` to `stop`.

    What the offsets say is checked only where they are used. Raises TypeError and ValueError.
    """
    offsets, data, validity, first_bit = column
    ends = memoryview(offsets)
    if ends.format not in ("i", "l", "q") or not ends.c_contiguous or ends.ndim != 1:
        raise TypeError(
            f"the offsets of {name} must be a buffer of int32 or int64, not of format {ends.format!r}"
        )
    _check_range(start, stop, len(ends) - 1, name)
    bits = None
    if validity is not None:
        bits = memoryview(validity).cast("B")
        if first_bit < 0 or first_bit + stop > 8 * len(bits):
            raise ValueError(
                f"the validity bitmap of {name} has {8 * len(bits)} bits, not {first_bit + stop}"
            )
    return ends, memoryview(data).cast("B"), bits, first_bit


def outside(name: str, row: int) -> ValueError:
    """The error for offsets that point to where there is nothing."""
    return ValueError(f"the offsets of row {row} of {name} lie outside of its data")


def rows(
    timestamps: memoryview | int,
    keys: CheckedColumn | None,
    values: CheckedColumn | None,
    start: int,
    stop: int,
) -> Iterator[Row]:
    """The records `start` to `stop` one by one; all have the same timestamp if that is an int."""
    for row in range(start, stop):
        timestamp_ms = timestamps if isinstance(timestamps, int) else timestamps[row]
        yield timestamp_ms, _content(keys, row, "keys"), _content(values, row, "values")


def _content(column: CheckedColumn | None, row: int, name: str) -> bytes | None:
    if column is None:
        return None
    offsets, data, bits, first_bit = column
    if bits is not None:
        at = first_bit + row
        if not bits[at >> 3] >> (at & 7) & 1:
            return None
    begin, end = offsets[row], offsets[row + 1]
    if not 0 <= begin <= end <= len(data):
        raise outside(name, row)
    return bytes(data[begin:end])


def are_plain(headers: object) -> bool:
    """True for a tuple or list of headers that can be encoded as they are."""
    if type(headers) is not tuple and type(headers) is not list:
        return False
    for header in headers:
        if type(header) is not tuple or len(header) != 2:
            return False
        name, content = header
        if type(name) is not str or (content is not None and type(content) is not bytes):
            return False
        if not name.isascii():
            try:
                name.encode()
            except UnicodeEncodeError:
                return False
    return True
