"""Records that are written alike, read together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from kclient._accel.reference.batch import encode_record
from kclient._accel.shared import records as raw_records
from kclient._accel.shared.runs import FEWEST, Run, find_run
from kclient._accel.shared.varint import zigzag

Written = tuple[int, int, bytes | None, bytes | None]
"""Timestamp delta, offset delta, key and value."""


def section(records: Sequence[Written]) -> bytes:
    return b"".join(encode_record(delta, offset, key, value, ()) for delta, offset, key, value in records)


def alike(count: int, start: int = 0, delta: int = 0) -> list[Written]:
    return [(delta, start + i, b"k%04d" % i, b"value %05d" % i) for i in range(count)]


def one_by_one(data: bytes, count: int, monkeypatch: pytest.MonkeyPatch) -> list[raw_records.RawRecord]:
    with monkeypatch.context() as patch:
        patch.setattr(raw_records, "find_run", lambda *_: None)
        return list(raw_records.decode_records(data, count))


def shapes(data: bytes, count: int) -> list[int]:
    """The number of records of each portion, negative for those that are no run."""
    return [
        portion.count if isinstance(portion, Run) else -len(list(portion))
        for portion in raw_records.decode_portions(data, count)
    ]


def test_records_of_one_size_are_one_run_and_the_same_as_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    data = section(alike(50))
    assert shapes(data, 50) == [50]
    assert list(raw_records.decode_records(data, 50)) == one_by_one(data, 50, monkeypatch)


def test_a_run_ends_where_offset_deltas_take_another_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 20_000
    data = section([(0, i, None, b"v") for i in range(count)])
    assert shapes(data, count) == [64, 8192 - 64, 8192, count - 2 * 8192]
    assert list(raw_records.decode_records(data, count)) == one_by_one(data, count, monkeypatch)


def test_offset_deltas_of_four_bytes_are_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    data = section(alike(20, start=2**20))
    assert shapes(data, 20) == [-20]
    assert [record[2] for record in raw_records.decode_records(data, 20)] == [2**20 + i for i in range(20)]
    data = section(alike(20, start=2**20 - 20))
    assert shapes(data, 20) == [20]
    assert list(raw_records.decode_records(data, 20)) == one_by_one(data, 20, monkeypatch)


@pytest.mark.parametrize("first", [8185, 16375])
def test_offset_deltas_whose_bytes_begin_again_are_not_taken_for_more(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    frames = []
    for i in range(20):
        varint = bytearray(zigzag(first + i if i < 7 else first + i - 8192))
        while len(varint) < len(zigzag(first)):
            varint[-1] |= 0x80
            varint.append(0)
        frame = b"\0\0" + varint + b"\1\2v\0"
        frames.append(zigzag(len(frame)) + frame)
    data = b"".join(frames)
    found = list(raw_records.decode_records(data, 20))
    assert found == one_by_one(data, 20, monkeypatch)
    assert [record[2] for record in found[6:8]] == [first + 6, first + 7 - 8192]


@pytest.mark.parametrize(
    "deltas",
    [
        [0] * 30,
        list(range(30)),
        [-1, 0] * 15,
        list(range(64, 94)),
        [5000] * 30,
        list(range(8192, 8222)),
        [-(2**63), 2**63 - 1] * 15,
    ],
    ids=str,
)
def test_timestamps_of_every_width_are_read(deltas: list[int]) -> None:
    records = [(delta, i, None, b"v" * 20) for i, delta in enumerate(deltas)]
    data = section(records)
    assert shapes(data, 30) == [30]
    assert [record[1] for record in raw_records.decode_records(data, 30)] == deltas


def test_a_timestamp_of_another_width_is_no_part_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    # Where the timestamp is longer the value is shorter, so that sizes agree.
    records = [(100 if i % 3 else 1, i, None, b"v" * (19 if i % 3 else 20)) for i in range(30)]
    data = section(records)
    assert len({record[0] for record in raw_records.decode_records(data, 30)}) == 1
    assert shapes(data, 30) == [-30]
    assert list(raw_records.decode_records(data, 30)) == one_by_one(data, 30, monkeypatch)
    # What one record has as the last byte of a timestamp goes on in another.
    changed = bytearray(section([(delta % 2, i, None, b"v" * 20) for i, delta in enumerate(range(30))]))
    changed[2 + 10 * (len(changed) // 30)] = 0x81
    assert find_run(bytes(changed), 0, 30) is None


@pytest.mark.parametrize("key", [None, b"", b"k", b"k" * 64, b"k" * 9000])
@pytest.mark.parametrize("value", [None, b"", b"v", b"v" * 64, b"v" * 9000])
def test_contents_of_every_size_are_read(key: bytes | None, value: bytes | None) -> None:
    data = section([(0, i, key, value) for i in range(FEWEST)])
    assert shapes(data, FEWEST) == [FEWEST]
    found = list(raw_records.decode_records(data, FEWEST))
    assert [record[3:] for record in found] == [(key, value, ())] * FEWEST


def test_records_that_differ_are_read_one_by_one_between_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    records = [*alike(20), *((0, 20 + i, None, bytes(i % 7)) for i in range(40)), *alike(20, start=60)]
    data = section(records)
    found = shapes(data, 80)
    assert found[0] == 20
    assert sum(map(abs, found)) == 80
    assert list(raw_records.decode_records(data, 80)) == one_by_one(data, 80, monkeypatch)


def test_a_gap_in_the_offsets_ends_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    records = [*alike(16), *alike(16, start=20)]
    data = section(records)
    assert shapes(data, 32) == [16, 16]
    assert list(raw_records.decode_records(data, 32)) == one_by_one(data, 32, monkeypatch)


def test_few_records_and_records_with_headers_are_no_run() -> None:
    assert find_run(section(alike(FEWEST - 1)), 0, FEWEST - 1) is None
    data = b"".join(encode_record(0, i, None, b"v", (("h", b"1"),)) for i in range(20))
    assert find_run(data, 0, 20) is None


def test_the_last_record_is_no_part_of_a_run_if_something_follows_it() -> None:
    data = section(alike(20)) + b"\0"
    portions = raw_records.decode_portions(data, 20)
    first = next(portions)
    assert isinstance(first, Run)
    assert first.count == 19
    second = next(portions)
    assert not isinstance(second, Run)
    with pytest.raises(ValueError, match="1 bytes follow the last record"):
        next(second)


def test_an_error_behind_the_data_is_raised_in_place_of_the_last_record() -> None:
    def read(count: int) -> Iterator[int]:
        for record in raw_records.decode_records(section(alike(20)), count, OSError("broken off")):
            offsets.append(record[2])
            yield record[2]

    for count, most in ((20, 19), (21, 20), (25, 20)):
        offsets: list[int] = []
        with pytest.raises(OSError, match="broken off"):
            list(read(count))
        assert offsets == list(range(most))


def test_a_run_can_be_read_in_parts() -> None:
    run = find_run(section(alike(30, delta=3)), 0, 30)
    assert run is not None
    run.skip(10)
    assert (run.offset, run.count) == (10, 20)
    assert next(run.keys) == b"k0010"
    assert next(run.values) == b"value 00010"
    assert next(run.timestamps(100)) == 103
    run.taken(1)
    assert [record[2] for record in run.records()] == list(range(11, 30))


class Watched(bytes):
    """Counts the bytes that are cut out of it."""

    cut = 0

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        if isinstance(key, slice):
            Watched.cut += len(found)
        return found


def test_looking_for_a_short_run_does_not_look_at_all_that_follows() -> None:
    # Sizes and offsets go on alike, and a byte of the contents' place differs after the first few.
    count = 100_000
    data = Watched(section([(0, 64 + i % 8000, None if i > FEWEST else b"", b"v") for i in range(count)]))
    Watched.cut = 0
    run = find_run(data, 0, count)
    assert run is not None
    assert run.count == FEWEST + 1
    assert Watched.cut < count
