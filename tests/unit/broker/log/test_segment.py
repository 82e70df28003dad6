"""One segment: a file of batches with its indexes; appended to, read, cut, recovered and removed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.consumer.fetched_batches import TIME_MS, batch
from harness.mock_time import MockTime
from kclient.broker.log.config import LogConfig
from kclient.broker.log.record_slice import RecordSlice
from kclient.broker.log.segment import LogSegment
from kclient.errors import CorruptRecordError
from kclient.record import RecordBatch, iter_batches
from kclient.record.open_files import OpenFiles

BASE = 100
ALL = 1 << 20
Open = Callable[..., LogSegment]


@pytest.fixture
def time() -> MockTime:
    return MockTime()


@pytest.fixture
def reopen(tmp_path: Path, time: MockTime) -> Iterator[Open]:
    """Open the segment, after closing the one that is open."""
    made: list[LogSegment] = []
    files = OpenFiles(10)

    def one(**config: int) -> LogSegment:
        if made:
            made.pop().close()
        made.append(
            LogSegment(tmp_path, BASE, LogConfig(**{"index_interval_bytes": 0, **config}), time, files)
        )
        return made[0]

    yield one
    for each in made:
        each.close_files()


def append(segment: LogSegment, *batches: bytes) -> None:
    data = b"".join(batches)
    found = [each for each in iter_batches(data) if isinstance(each, RecordBatch)]
    segment.append(data, found)


def five(segment: LogSegment) -> list[bytes]:
    """Five batches of two records: 100 and 101, 102 and 103, and so on; appended and returned."""
    made = [batch(offset, 2) for offset in range(BASE, BASE + 10, 2)]
    for each in made:
        append(segment, each)
    return made


def offsets(found: tuple[int, memoryview | RecordSlice] | None) -> list[int]:
    assert found is not None
    assert isinstance(found[1], memoryview)
    return [each.base_offset for each in iter_batches(found[1])]


def test_a_new_segment_is_empty_and_ends_where_it_begins(reopen: Open) -> None:
    segment = reopen()
    assert (segment.size, segment.next_offset(), segment.max_timestamp) == (0, BASE, (-1, BASE))
    assert segment.read(BASE, ALL, 0, min_one_batch=True) is None
    assert segment.position_of(BASE) is None


def test_a_read_begins_with_the_batch_that_holds_the_offset(reopen: Open) -> None:
    segment = reopen()
    made = five(segment)
    assert segment.next_offset() == 110
    for offset, first in ((BASE, 100), (101, 100), (105, 104), (109, 108)):
        found = segment.read(offset, ALL, segment.size, min_one_batch=True)
        assert offsets(found) == list(range(first, 110, 2))
        assert found is not None
        assert found[0] == segment.position_of(offset) == (first - BASE) // 2 * len(made[0])
    assert segment.read(110, ALL, segment.size, min_one_batch=True) is None


def test_a_read_is_limited_by_bytes_and_by_the_position_that_readers_may_see(reopen: Open) -> None:
    segment = reopen()
    size = len(five(segment)[0])
    assert offsets(segment.read(BASE, 2 * size, segment.size, min_one_batch=False)) == [100, 102]
    assert offsets(segment.read(BASE, 1, segment.size, min_one_batch=True)) == [100]
    assert offsets(segment.read(BASE, ALL, 3 * size, min_one_batch=True)) == [100, 102, 104]
    assert segment.read(106, ALL, 3 * size, min_one_batch=True) is None


def test_what_is_too_much_to_read_at_once_is_a_slice_of_the_file(reopen: Open) -> None:
    segment = reopen()
    size = len(five(segment)[0])
    found = segment.read(102, 3 * size, segment.size, min_one_batch=True, inline_bytes=size)
    assert found is not None
    assert isinstance(found[1], RecordSlice)
    assert found[0] == size
    assert isinstance(
        (segment.read(102, size, segment.size, min_one_batch=True, inline_bytes=size) or (0, 0))[1],
        memoryview,
    )


def test_a_time_is_looked_up_from_an_offset_on(reopen: Open) -> None:
    segment = reopen()
    five(segment)  # each record is of TIME_MS and its offset
    assert segment.max_timestamp == (TIME_MS + 109, 109)
    assert (segment.offset_for_timestamp(TIME_MS + 105, BASE) or ())[:2] == (TIME_MS + 105, 105)
    assert (segment.offset_for_timestamp(0, 107) or ())[:2] == (TIME_MS + 107, 107)
    assert segment.offset_for_timestamp(TIME_MS + 110, BASE) is None


@pytest.mark.parametrize("interval_bytes", [0, 1 << 20])
def test_truncating_cuts_the_batch_that_holds_the_offset_and_the_greatest_timestamp_with_it(
    reopen: Open, interval_bytes: int
) -> None:
    segment = reopen(index_interval_bytes=interval_bytes)
    size = len(five(segment)[0])
    assert segment.truncate_to(105) == 3 * size
    assert (segment.next_offset(), segment.size) == (104, 2 * size)
    assert segment.max_timestamp == (TIME_MS + 103, 103)
    assert segment.truncate_to(104) == 0
    append(segment, batch(104, 1))
    assert offsets(segment.read(103, ALL, segment.size, min_one_batch=True)) == [102, 104]


def test_a_segment_that_was_closed_is_read_again_with_its_indexes(reopen: Open) -> None:
    five(reopen())
    segment = reopen()
    assert (segment.next_offset(), segment.max_timestamp) == (110, (TIME_MS + 109, 109))
    assert segment.offset_index.entries > 0
    assert offsets(segment.read(107, ALL, segment.size, min_one_batch=True)) == [106, 108]


@pytest.mark.parametrize("suffix", ["index", "timeindex"])
@pytest.mark.parametrize("harm", ["gone", "garbage"])
def test_an_index_that_is_not_that_of_its_log_is_built_again(
    reopen: Open, tmp_path: Path, suffix: str, harm: str, caplog: pytest.LogCaptureFixture
) -> None:
    five(reopen())
    reopen().close()
    path = tmp_path / f"{BASE:020d}.{suffix}"
    if harm == "gone":
        path.unlink()
    else:
        path.write_bytes(b"\x7f" * 24)
    segment = reopen()
    assert offsets(segment.read(105, ALL, segment.size, min_one_batch=True)) == [104, 106, 108]
    assert segment.max_timestamp == (TIME_MS + 109, 109)
    assert "Rebuilding the indexes" in caplog.text


def test_recovering_shows_every_good_batch_and_cuts_at_the_first_bad_byte(reopen: Open) -> None:
    segment = reopen()
    size = len(five(segment)[0])
    with segment.path.open("r+b") as file:
        file.seek(4 * size - 1)
        file.write(b"\xff")
    segment = reopen()
    seen: list[int] = []
    assert segment.recover(lambda each: seen.append(each.base_offset)) == 2 * size
    assert seen == [100, 102, 104]
    assert (segment.next_offset(), segment.size, segment.max_timestamp) == (
        106,
        3 * size,
        (TIME_MS + 105, 105),
    )


def test_a_file_that_ends_within_a_batch_is_told_by_a_walk_and_cut_by_a_recovery(reopen: Open) -> None:
    segment = reopen()
    size = len(five(segment)[0])
    segment.records.truncate_to(5 * size - 7)
    with pytest.raises(CorruptRecordError, match="ends within the batch"):
        list(segment.batches())
    assert segment.recover(lambda _: None) == size - 7
    assert segment.next_offset() == 108


def test_it_rolls_by_size_and_by_the_age_of_its_records(reopen: Open) -> None:
    segment = reopen()
    config = LogConfig(segment_bytes=1000, segment_ms=1000, segment_jitter_ms=0)
    assert not segment.should_roll(config, 1000, TIME_MS, BASE)
    assert segment.should_roll(config, 1001, TIME_MS, BASE)
    append(segment, batch(BASE, 1))
    first_ms = TIME_MS + BASE
    assert not segment.should_roll(config, 10, first_ms + 1000, 101)
    assert segment.should_roll(config, 10, first_ms + 1001, 101)
    assert segment.should_roll(config, 10, first_ms, BASE + 2**31)


def test_a_reader_that_has_it_pinned_reads_on_after_it_was_removed(reopen: Open) -> None:
    segment = reopen()
    five(segment)
    segment.pin()
    segment.close_files(removing=True)
    segment.delete_files()
    assert not segment.path.exists()
    assert offsets(segment.read(108, ALL, segment.size, min_one_batch=True)) == [108]
    segment.unpin()


def test_renaming_takes_all_files_along(reopen: Open, tmp_path: Path) -> None:
    segment = reopen()
    five(segment)
    segment.change_suffix("", ".deleted")
    assert {path.name for path in tmp_path.iterdir()} == {
        f"{BASE:020d}.{kind}.deleted" for kind in ("log", "index", "timeindex")
    }
    assert offsets(segment.read(108, ALL, segment.size, min_one_batch=True)) == [108]
