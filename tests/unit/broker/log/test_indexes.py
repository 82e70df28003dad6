"""Offset, time and transaction indexes: their bytes, lookups, limits and files."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from kclient.broker.log.abstract_index import CorruptIndexError
from kclient.broker.log.offset_index import OffsetIndex
from kclient.broker.log.time_index import TimeIndex
from kclient.broker.log.transaction_index import AbortedTxn, TransactionIndex
from kclient.errors import IllegalStateError, InvalidOffsetError
from kclient.record.open_files import OpenFiles


@pytest.fixture
def index(tmp_path: Path) -> OffsetIndex:
    made = OffsetIndex(tmp_path / "100.index", 100, 1000)
    for offset, position in ((105, 50), (110, 120), (120, 300)):
        made.append(offset, position)
    return made


@pytest.fixture
def times(tmp_path: Path) -> TimeIndex:
    made = TimeIndex(tmp_path / "100.timeindex", 100, 1000)
    for timestamp_ms, offset in ((1000, 105), (1010, 110), (1040, 120)):
        made.maybe_append(timestamp_ms, offset)
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


def test_the_file_has_kafkas_bytes_once_it_is_written(index: OffsetIndex, times: TimeIndex) -> None:
    assert not index.path.exists()
    index.write_pending()
    assert index.path.read_bytes() == struct.pack(">6i", 5, 50, 10, 120, 20, 300)
    times.write_pending()
    assert times.path.read_bytes() == struct.pack(">qiqiqi", 1000, 5, 1010, 10, 1040, 20)
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


def test_an_index_is_full_at_its_limit_and_a_time_index_one_entry_before(tmp_path: Path) -> None:
    offsets = OffsetIndex(tmp_path / "i", 0, 17)
    times = TimeIndex(tmp_path / "t", 0, 37)
    fullness = []
    for i in range(3):
        fullness.append((offsets.is_full, times.is_full))
        offsets.append(i + 1, i + 1)
        times.maybe_append(i + 1, i + 1)
    assert fullness == [(False, False), (False, False), (True, True)]


def test_times_that_do_not_advance_add_nothing_and_those_that_go_back_are_refused(times: TimeIndex) -> None:
    times.maybe_append(1040, 130)
    assert (times.entries, times.last_entry) == (3, (1040, 120))
    with pytest.raises(IllegalStateError):
        times.maybe_append(1039, 131)
    with pytest.raises(InvalidOffsetError):
        times.maybe_append(1050, 119)


def test_the_last_entry_not_after_a_time_is_found(times: TimeIndex) -> None:
    assert [times.lookup(at) for at in (0, 999, 1000, 1009, 1010, 1039, 1040, 9999)] == [
        (-1, 100), (-1, 100), (1000, 105), (1000, 105), (1010, 110), (1010, 110), (1040, 120), (1040, 120),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "data",
    [b"123", struct.pack(">4i", 5, 50, 5, 60), struct.pack(">4i", 5, 50, 6, 50), struct.pack(">2i", -1, 5)],
)
def test_an_offset_index_that_cannot_be_right_is_recognised(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "0.index"
    path.write_bytes(data)
    with pytest.raises(CorruptIndexError):
        OffsetIndex(path, 0, 100).validate()


@pytest.mark.parametrize("data", [b"123", struct.pack(">qiqi", 5, 1, 5, 2), struct.pack(">qiqi", 5, 2, 6, 1)])
def test_a_time_index_that_cannot_be_right_is_recognised(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "0.timeindex"
    path.write_bytes(data)
    with pytest.raises(CorruptIndexError):
        TimeIndex(path, 0, 100).validate()


def test_renaming_writes_what_was_only_in_memory(index: OffsetIndex, tmp_path: Path) -> None:
    index.rename(tmp_path / "100.index.deleted")
    assert (tmp_path / "100.index.deleted").stat().st_size == 24
    index.delete()
    index.delete()
    assert list(tmp_path.iterdir()) == []


def test_aborted_transactions_that_touch_a_range_are_found(tmp_path: Path) -> None:
    index = TransactionIndex(tmp_path / "0.txnindex")
    txns = [AbortedTxn(1, 0, 10, 11), AbortedTxn(2, 5, 20, 12), AbortedTxn(3, 30, 40, 41)]
    for txn in txns:
        index.append(txn)
    assert index.path.read_bytes() == b"".join(
        struct.pack(">hqqqq", 0, txn.producer_id, txn.first_offset, txn.last_offset, txn.last_stable_offset)
        for txn in txns
    )
    again = TransactionIndex(index.path)
    assert again.collect(0, 100) == (txns, False)
    assert again.collect(11, 25) == ([txns[1]], True)
    assert again.collect(0, 5) == ([txns[0]], True)
    assert again.collect(41, 50) == ([], False)
    with pytest.raises(IllegalStateError):
        again.append(AbortedTxn(4, 1, 40, 50))
    again.reset()
    assert not index.path.exists()


def test_of_many_sealed_indexes_few_are_mapped_and_all_can_be_searched(tmp_path: Path) -> None:
    files = OpenFiles(3)
    made = [OffsetIndex(tmp_path / f"{number}.index", 0, 1000, files) for number in range(10)]
    for number, index in enumerate(made):
        index.append(5, number)
        index.seal()
    for _ in range(2):
        assert [index.lookup(9) for index in made] == [(5, number) for number in range(10)]
        assert files.count == 3
    made[-1].append(6, 100)
    made[-2].load()
    for index in made[:-2]:
        index.lookup(9)
    assert made[-1].lookup(9) == (6, 100), "what is not on disk yet is not dropped"
    made[-2].path.unlink()
    assert made[-2].lookup(9) == (5, 8)
    for index in made:
        index.release()
    assert files.count == 0
