"""Both record readers, and everything that can be seen of them."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Sequence
from typing import Any

import pytest

from kclient._accel.reference import reader as reference_reader
from kclient._accel.shared import columns as raw
from kclient.consumer.types import ConsumerRecord
from kclient.record import (
    RecordBatch,
)
from kclient.record import constants as c

native = pytest.importorskip("kclient._accel.native.reader", reason="the native body is not built")

LOWEST = -(2**63)
Call = tuple[Any, ...]
"""("read", most), or ("columns", most, view, column_bytes)."""


def strings(column: raw.BinaryColumn, count: int) -> list[bytes | None]:
    """The strings of a column, by what its layout says."""
    found: list[bytes | None] = []
    data = [memoryview(each) for each in column.data]
    for index in range(count):
        if column.validity is not None and not memoryview(column.validity)[index >> 3] >> (index & 7) & 1:
            found.append(None)
            continue
        if column.offsets is not None:
            start, stop = struct.unpack_from("=ii", memoryview(column.offsets).cast("B"), 4 * index)
            found.append(bytes(data[0][start:stop]))
            continue
        assert column.views is not None
        view = bytes(memoryview(column.views)[16 * index : 16 * index + 16])
        size = struct.unpack_from("=i", view)[0]
        if size <= 12:
            assert not any(view[4 + size :])
            found.append(view[4 : 4 + size])
        else:
            prefix, buffer, at = struct.unpack_from("=4sii", view, 4)
            found.append(bytes(data[buffer][at : at + size]))
            assert found[-1] == prefix + bytes(data[buffer][at + 4 : at + size])
            assert len(found[-1]) == size
    assert found.count(None) == column.null_count
    assert (column.validity is None) == (column.null_count == 0)
    if column.validity is not None:
        assert len(memoryview(column.validity)) == (count + 7) // 8
        assert not memoryview(column.validity)[-1] >> (count & 7 or 8)
    return found


def numbers(code: str, buffer: Any, count: int) -> tuple[int, ...]:
    return struct.unpack(f"={count}{code}", memoryview(buffer).cast("B"))


def column_facts(columns: raw.Columns, view: bool) -> list[tuple[Any, ...]]:
    """(offset, time, its type, key, value, headers) of each record."""
    count = columns.count
    for column in (columns.keys, columns.values):
        assert (column.offsets is None) == view
        assert (column.views is None) != view
        if not view:
            assert len(column.data) == 1
            assert struct.unpack_from("=i", memoryview(column.offsets).cast("B"), 4 * count)[0] == len(
                memoryview(column.data[0])
            )
    headers: list[tuple[Any, ...]] = [()] * count
    if columns.headers is not None:
        ends = numbers("i", columns.headers.offsets, count + 1)
        assert ends[0] == 0
        names = strings(columns.headers.names, ends[-1])
        values = strings(columns.headers.values, ends[-1])
        pairs = [
            (name.decode() if name is not None else None, value)
            for name, value in zip(names, values, strict=True)
        ]
        headers = [tuple(pairs[start:stop]) for start, stop in itertools.pairwise(ends)]
    return list(
        zip(
            numbers("q", columns.offsets, count),
            numbers("q", columns.timestamps, count),
            numbers("b", columns.timestamp_types, count),
            strings(columns.keys, count),
            strings(columns.values, count),
            headers,
            strict=True,
        )
    )


def record_facts(record: Any) -> tuple[Any, ...]:
    assert record.serialized_key_size == (-1 if record.key is None else len(record.key))
    assert record.serialized_value_size == (-1 if record.value is None else len(record.value))
    assert type(record) is ConsumerRecord
    assert (record.topic, record.partition) == ("t", 3)
    return (
        record.offset,
        record.timestamp_ms,
        record.timestamp_type,
        record.key,
        record.value,
        record.headers,
    )


def error_facts(error: BaseException) -> tuple[Any, ...]:
    cause = error.__cause__
    return type(error), str(error), type(cause), str(cause)


def story(reader: Any, calls: Sequence[Call], limit: int = 10_000) -> list[Any]:
    """Everything that can be seen of a reader while `calls` are made, over and over, until it has ended or failed."""
    seen: list[Any] = []
    ends = 0
    for call in itertools.islice(itertools.cycle(calls), limit):
        outcome: Any
        try:
            if call[0] == "read":
                records = reader.read(call[1])
                outcome = [(*record_facts(record), record.leader_epoch) for record in records]
                ends += not records and call[1] > 0
            else:
                columns = reader.read_columns(*call[1:])
                outcome = None if columns is None else column_facts(columns, call[2])
                ends += columns is None and call[1] != 0
        except AssertionError:
            raise
        except Exception as error:
            outcome = error_facts(error)
            ends += 1
        seen.append((outcome, reader.next_offset, reader.bytes_read, reader.leader_epoch, reader.exhausted))
        if ends > 2:
            return seen
    raise AssertionError("the reader does not come to an end")


def both(
    data: Any,
    calls: Sequence[Call],
    from_offset: int = LOWEST,
    check_crc: bool = True,
    aborted: Sequence[tuple[int, int]] | None = None,
    decompress_max: int = 1 << 20,
) -> list[Any]:
    """The story of both readers, which is the same."""
    stories = [
        story(
            body.RecordReader(
                data,
                0,
                len(data),
                "t",
                3,
                from_offset,
                check_crc,
                ConsumerRecord,
                decompress_max=decompress_max,
                aborted=aborted,
            ),
            calls,
        )
        for body in (reference_reader, native)
    ]
    assert stories[0] == stories[1]
    return stories[0]


def flat(told: list[Any]) -> tuple[list[Any], Any]:
    """The records of a story, without leader epochs, and its error."""
    found: list[Any] = []
    for outcome, *_ in told:
        if isinstance(outcome, tuple):
            return found, outcome
        found += [facts[:6] for facts in outcome or ()]
    return found, None


PLANS: list[list[Call]] = [
    [("read", 1)],
    [("read", 1000)],
    [("columns", None, False)],
    [("columns", None, True)],
    [("columns", 1, False), ("columns", 2, True)],
    [("read", 2), ("columns", 3, False), ("read", 0), ("columns", 0, True), ("columns", 1, True)],
    [("columns", None, False, 10)],
]


def agree(data: Any, **settings: Any) -> None:
    """Every way to read gives the same in both bodies, and the same as every other way."""
    first: Any = None
    for plan in PLANS:
        told = flat(both(data, plan, **settings))
        first = first or told
        assert told == first


def packed(codec: int, payload: bytes, count: int, attributes: int = 0) -> bytes:
    """A batch of `payload`, whatever that is."""
    covered = c.COVERED.pack(codec | attributes, max(count - 1, 0), 1000, 1000, -1, -1, -1, count)
    data = bytearray(c.PREFIX.pack(0, 49 + len(payload), -1, 2, 0) + covered + payload)
    RecordBatch(memoryview(data)).update_checksum()
    return bytes(data)
