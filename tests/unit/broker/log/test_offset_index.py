"""Offset index: its bytes, lookups by offset and by position, its limit, and what cannot be one."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from kclient.broker.log.abstract_index import CorruptIndexError
from kclient.broker.log.offset_index import OffsetIndex
from kclient.errors import InvalidOffsetError


@pytest.fixture
def index(tmp_path: Path) -> OffsetIndex:
    made = OffsetIndex(tmp_path / "100.index", 100, 1000)
    for offset, position in ((105, 50), (110, 120), (120, 300)):
        made.append(offset, position)
    return made


def test_the_greatest_entry_not_above_an_offset_is_found(index: OffsetIndex) -> None:
    assert [index.lookup(offset) for offset in (100, 104, 105, 109, 110, 119, 120, 2**40)] == [
        (100, 0), (100, 0), (105, 50), (105, 50), (110, 120), (110, 120), (120, 300), (120, 300),
    ]  # fmt: skip
    assert index.last_offset == 120


def test_the_upper_bound_is_the_first_entry_behind_a_place(index: OffsetIndex) -> None:
    assert [index.upper_bound(at) for at in (0, 50, 51, 120, 300, 301)] == [105, 105, 110, 110, 120, None]


def test_offsets_of_an_index_rise(index: OffsetIndex) -> None:
    for offset in (120, 119, 100):
        with pytest.raises(InvalidOffsetError):
            index.append(offset, 400)


def test_the_file_has_kafkas_bytes_once_it_is_written(index: OffsetIndex) -> None:
    assert not index.path.exists()
    index.write_pending()
    assert index.path.read_bytes() == struct.pack(">6i", 5, 50, 10, 120, 20, 300)
    index.append(130, 400)
    index.write_pending()
    assert index.path.read_bytes() == struct.pack(">8i", 5, 50, 10, 120, 20, 300, 30, 400)


def test_an_index_is_read_again_from_its_file(index: OffsetIndex) -> None:
    index.seal()
    again = OffsetIndex(index.path, 100, 1000)
    again.validate()
    assert (again.entries, again.lookup(115)) == (3, (110, 120))
    again.append(125, 500)
    assert again.lookup(125) == (125, 500)
    again.seal()
    assert (again.lookup(104), again.lookup(125)) == ((100, 0), (125, 500))
    again.release()


@pytest.mark.parametrize(("offset", "left"), [(99, 0), (105, 0), (106, 1), (110, 1), (120, 2), (121, 3)])
def test_truncation_drops_entries_at_and_above_an_offset_from_memory_and_file(
    index: OffsetIndex, offset: int, left: int
) -> None:
    index.write_pending()
    index.truncate_to(offset)
    assert index.entries == left
    assert index.path.stat().st_size == left * index.ENTRY_SIZE
    index.append(200, 1000)
    assert index.lookup(200) == (200, 1000)


def test_an_index_is_full_at_its_limit(tmp_path: Path) -> None:
    offsets = OffsetIndex(tmp_path / "i", 0, 17)
    fullness = []
    for i in range(3):
        fullness.append(offsets.is_full)
        offsets.append(i + 1, i + 1)
    assert fullness == [False, False, True]


def test_the_first_entry_may_be_that_of_the_base_offset_itself(tmp_path: Path) -> None:
    made = OffsetIndex(tmp_path / "100.index", 100, 1000)
    made.append(100, 0)
    assert (made.entries, made.last_offset, made.upper_bound(0)) == (1, 100, 100)
    with pytest.raises(
        InvalidOffsetError, match=r"Offset 100 for 100\.index is not above its last offset 100"
    ):
        made.append(100, 40)


def test_an_offset_too_far_from_the_base_for_four_bytes_is_refused_and_changes_nothing(
    index: OffsetIndex,
) -> None:
    with pytest.raises(struct.error):
        index.append(100 + 2**31, 400)
    assert (index.entries, index.last_offset) == (3, 120)
    index.append(100 + 2**31 - 1, 400)
    assert index.lookup(2**40) == (100 + 2**31 - 1, 400)


@pytest.mark.parametrize(
    "data",
    [b"123", struct.pack(">4i", 5, 50, 5, 60), struct.pack(">4i", 5, 50, 6, 50), struct.pack(">2i", -1, 5)],
)
def test_an_offset_index_that_cannot_be_right_is_recognised(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "0.index"
    path.write_bytes(data)
    with pytest.raises(CorruptIndexError):
        OffsetIndex(path, 0, 100).validate()


def test_an_entry_at_the_beginning_of_segment_and_file_is_sound(tmp_path: Path) -> None:
    path = tmp_path / "7.index"
    path.write_bytes(struct.pack(">4i", 0, 0, 1, 1))
    found = OffsetIndex(path, 7, 100)
    found.validate()
    assert [found.entry(number) for number in range(found.entries)] == [(7, 0), (8, 1)]
