"""Entries of a segment's index in memory, in the file and mapped: when they go from one to the other."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from kclient.broker.log.abstract_index import AbstractIndex, CorruptIndexError
from kclient.broker.log.offset_index import OffsetIndex
from kclient.broker.log.time_index import TimeIndex
from kclient.errors import InvalidOffsetError
from kclient.record.open_files import OpenFiles

BASE = 100


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "100.index"


def index(path: Path, *offsets: int, files: OpenFiles | None = None) -> OffsetIndex:
    """An index that puts each offset at ten times its place."""
    made = OffsetIndex(path, BASE, 1000, files)
    for offset in offsets:
        made.append(offset, offset * 10)
    return made


def test_a_limit_is_rounded_down_to_whole_entries(path: Path) -> None:
    assert [OffsetIndex(path, 0, limit).max_bytes for limit in (7, 8, 15, 16)] == [0, 8, 8, 16]
    assert [TimeIndex(path, 0, limit).max_bytes for limit in (11, 12, 23, 24)] == [0, 12, 12, 24]


def test_an_index_without_entries_answers_with_its_base_and_writes_an_empty_file(path: Path) -> None:
    made = index(path)
    assert (made.entries, made.last_offset, made.lookup(2**40), made.upper_bound(0)) == (
        0,
        BASE,
        (BASE, 0),
        None,
    )
    made.seal()
    assert path.read_bytes() == b""
    made.validate()
    assert made.lookup(BASE) == (BASE, 0)
    times = TimeIndex(path.with_suffix(".timeindex"), BASE, 1000)
    assert (times.last_entry, times.lookup(2**40)) == ((-1, BASE), (-1, BASE))


def test_what_is_only_in_memory_is_lost_with_it(path: Path) -> None:
    made = index(path, 101)
    made.write_pending()
    made.append(102, 1020)
    assert made.size_in_bytes == 16
    made.release()
    assert index(path).entries == 1


def test_a_file_that_vanished_is_written_again(path: Path) -> None:
    made = index(path, 101)
    made.write_pending()
    path.unlink()
    made.sync()
    made.write_pending()
    assert path.exists()


def test_a_reset_empties_the_file_at_once(path: Path) -> None:
    made = index(path, 101, 102)
    made.seal()
    made.reset()
    assert (path.read_bytes(), made.entries, made.sealed) == (b"", 0, False)
    made.append(101, 5)
    made.write_pending()
    assert path.read_bytes() == struct.pack(">2i", 1, 5)


def test_an_entry_added_to_a_sealed_index_opens_it_again(path: Path) -> None:
    files = OpenFiles(4)
    made = index(path, 101, files=files)
    made.seal()
    assert (made.lookup(101), files.count) == ((101, 1010), 1)
    made.append(102, 1020)
    assert (made.sealed, files.count) == (False, 0)
    made.seal()
    assert path.read_bytes() == struct.pack(">4i", 1, 1010, 2, 1020)
    made.release()


def test_a_dropped_mapping_is_made_again(path: Path) -> None:
    made = index(path, 101, 105)
    made.seal()
    for _ in range(2):
        assert made.lookup(104) == (101, 1010)
        made.drop()
    made.release()


def test_a_loaded_index_needs_its_file_no_more(path: Path) -> None:
    files = OpenFiles(4)
    made = index(path, 101, files=files)
    made.seal()
    made.load()
    assert files.count == 0
    made.delete()
    assert made.lookup(200) == (101, 1010)
    made.release()
    with pytest.raises(FileNotFoundError):
        made.lookup(200)


def test_an_index_that_cannot_be_renamed_keeps_its_name(path: Path) -> None:
    made = index(path, 101)
    with pytest.raises(FileNotFoundError):
        made.rename(path.parent / "none" / "100.index")
    assert (made.path, path.exists()) == (path, True)
    assert made.lookup(101) == (101, 1010)


@pytest.mark.parametrize(("kind", "size"), [(OffsetIndex, 8), (TimeIndex, 12)])
def test_a_file_of_part_of_an_entry_is_corrupt(path: Path, kind: type[AbstractIndex], size: int) -> None:
    for length in (1, size - 1, size + 1):
        path.write_bytes(b"\0" * length)
        with pytest.raises(CorruptIndexError, match="no multiple"):
            kind(path, BASE, 1000).validate()
    path.write_bytes(b"\0" * size)
    kind(path, BASE, 1000).validate()


def test_a_refused_entry_changes_nothing(path: Path) -> None:
    made = index(path, 105)
    with pytest.raises(InvalidOffsetError):
        made.append(105, 9999)
    assert (made.entries, made.lookup(200)) == (1, (105, 1050))


def test_renaming_writes_what_was_only_in_memory(path: Path) -> None:
    made = index(path, 101, 102, 103)
    renamed = path.with_suffix(".index.deleted")
    made.rename(renamed)
    assert renamed.stat().st_size == 24
    made.delete()
    made.delete()
    assert list(path.parent.iterdir()) == []


def test_of_many_sealed_indexes_few_are_mapped_and_all_can_be_searched(tmp_path: Path) -> None:
    files = OpenFiles(3)
    made = [OffsetIndex(tmp_path / f"{number}.index", 0, 1000, files) for number in range(10)]
    for number, one in enumerate(made):
        one.append(5, number)
        one.seal()
    for _ in range(2):
        assert [one.lookup(9) for one in made] == [(5, number) for number in range(10)]
        assert files.count == 3
    made[-1].append(6, 100)
    made[-2].load()
    for one in made[:-2]:
        one.lookup(9)
    assert made[-1].lookup(9) == (6, 100), "what is not on disk yet is not dropped"
    made[-2].path.unlink()
    assert made[-2].lookup(9) == (5, 8)
    for one in made:
        one.release()
    assert files.count == 0
