"""Time index: its bytes, lookups by time, the place it keeps for rolling, and what cannot be one."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from kclient.broker.log.abstract_index import CorruptIndexError
from kclient.broker.log.time_index import TimeIndex
from kclient.errors import IllegalStateError, InvalidOffsetError


@pytest.fixture
def times(tmp_path: Path) -> TimeIndex:
    made = TimeIndex(tmp_path / "100.timeindex", 100, 1000)
    for timestamp_ms, offset in ((1000, 105), (1010, 110), (1040, 120)):
        made.maybe_append(timestamp_ms, offset)
    return made


def test_the_file_has_kafkas_bytes_once_it_is_written(times: TimeIndex) -> None:
    times.write_pending()
    assert times.path.read_bytes() == struct.pack(">qiqiqi", 1000, 5, 1010, 10, 1040, 20)


@pytest.mark.parametrize(("offset", "left"), [(99, 0), (105, 0), (106, 1), (110, 1), (120, 2), (121, 3)])
def test_truncation_drops_entries_at_and_above_an_offset_from_memory_and_file(
    times: TimeIndex, offset: int, left: int
) -> None:
    times.write_pending()
    times.truncate_to(offset)
    assert times.entries == left
    assert times.path.stat().st_size == left * times.ENTRY_SIZE


def test_an_index_is_full_one_entry_before_its_limit(tmp_path: Path) -> None:
    times = TimeIndex(tmp_path / "t", 0, 37)
    fullness = []
    for i in range(3):
        fullness.append(times.is_full)
        times.maybe_append(i + 1, i + 1)
    assert fullness == [False, False, True]
    assert times.last_entry == (3, 3), "the entry that is added on roll has its place"


def test_times_that_do_not_advance_add_nothing_and_those_that_go_back_are_refused(times: TimeIndex) -> None:
    times.maybe_append(1040, 130)
    assert (times.entries, times.last_entry) == (3, (1040, 120))
    with pytest.raises(IllegalStateError):
        times.maybe_append(1039, 131)
    with pytest.raises(InvalidOffsetError):
        times.maybe_append(1050, 119)


def test_what_is_refused_says_what_it_is_and_changes_nothing(times: TimeIndex) -> None:
    with pytest.raises(
        IllegalStateError, match=r"Timestamp 1039 for 100\.timeindex is before its last, 1040"
    ):
        times.maybe_append(1039, 120)
    with pytest.raises(
        InvalidOffsetError, match=r"Offset 119 for 100\.timeindex is below its last offset 120"
    ):
        times.maybe_append(1040, 119)
    assert (times.entries, times.last_entry) == (3, (1040, 120))


def test_the_last_entry_not_after_a_time_is_found(times: TimeIndex) -> None:
    assert [times.lookup(at) for at in (0, 999, 1000, 1009, 1010, 1039, 1040, 9999)] == [
        (-1, 100), (-1, 100), (1000, 105), (1000, 105), (1010, 110), (1010, 110), (1040, 120), (1040, 120),
    ]  # fmt: skip


def test_the_time_of_the_epoch_is_one_like_others(tmp_path: Path) -> None:
    times = TimeIndex(tmp_path / "0.timeindex", 0, 100)
    times.maybe_append(0, 0)
    assert (times.entries, times.last_entry, times.lookup(0)) == (1, (0, 0), (0, 0))
    times.write_pending()
    TimeIndex(times.path, 0, 100).validate()


@pytest.mark.parametrize("data", [b"123", struct.pack(">qiqi", 5, 1, 5, 2), struct.pack(">qiqi", 5, 2, 6, 1)])
def test_a_time_index_that_cannot_be_right_is_recognised(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "0.timeindex"
    path.write_bytes(data)
    with pytest.raises(CorruptIndexError):
        TimeIndex(path, 0, 100).validate()


def test_a_time_before_the_epoch_is_in_no_index(tmp_path: Path) -> None:
    path = tmp_path / "0.timeindex"
    path.write_bytes(struct.pack(">qi", -1, 0))
    with pytest.raises(CorruptIndexError, match=r"0\.timeindex is out of order at timestamp -1"):
        TimeIndex(path, 0, 100).validate()


def test_later_times_may_have_the_same_offset_and_times_of_no_record_are_left_out(tmp_path: Path) -> None:
    times = TimeIndex(tmp_path / "100.timeindex", 100, 1000)
    times.maybe_append(-1, 101)
    assert times.entries == 0
    times.maybe_append(10, 101)
    times.maybe_append(11, 101)
    assert (times.entries, times.lookup(10), times.lookup(11)) == (2, (10, 101), (11, 101))
    times.write_pending()
    TimeIndex(times.path, 100, 1000).validate()
