"""Batches in a segment file."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kclient.errors import CorruptRecordError, IllegalStateError
from kclient.record import FileRecords, MemoryRecordsBuilder, RecordBatch


def made(offset: int, count: int = 3, timestamp: int = 1000) -> bytes:
    builder = MemoryRecordsBuilder(base_offset=offset, partition_leader_epoch=5)
    for n in range(count):
        builder.append(timestamp + n, b"k", b"v" * 50)
    return builder.close()


@pytest.fixture
def records(tmp_path: Path) -> Iterator[FileRecords]:
    with FileRecords.open(tmp_path / "0.log") as opened:
        yield opened


def test_what_is_appended_is_read_and_still_there_when_opened_again(records: FileRecords) -> None:
    first, second = made(0), made(3)
    assert records.append(first) == 0
    assert records.append([second[:61], memoryview(second)[61:]]) == len(first)
    assert records.size == len(first) + len(second)
    assert records.read(len(first), 1 << 30) == second
    with FileRecords.open(records.path, writable=False) as again:
        assert again.size == records.size
        assert again.read(0, again.size) == first + second


def test_reading_outside_the_file_gives_nothing(records: FileRecords) -> None:
    records.append(b"12345")
    assert records.read(5, 10) == records.read(-1, 10) == records.read(0, 0) == b""
    assert records.read(3, 10) == b"45"


def test_very_many_buffers_are_written_in_order(records: FileRecords) -> None:
    records.append([b"%05d" % n for n in range(3000)])
    assert records.read(0, records.size) == b"".join(b"%05d" % n for n in range(3000))


def test_headers_are_read_without_the_rest(records: FileRecords, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = made(0, 1000), made(1000)
    records.append(first + second)
    most: list[int] = []
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, n, at: (most.append(n), pread(fd, n, at))[1])
    headers = list(records.batch_headers())
    assert [(h.position, h.base_offset, h.last_offset) for h in headers] == [
        (0, 0, 999),
        (len(first), 1000, 1002),
    ]
    assert max(most) == 61
    batch = records.batch(headers[1])
    assert isinstance(batch, RecordBatch)
    assert bytes(batch.view) == second


def test_a_batch_cut_off_at_the_end_has_no_header(records: FileRecords) -> None:
    records.append(made(0) + made(3)[:-1])
    assert [header.base_offset for header in records.batch_headers()] == [0]


def test_damage_is_told_with_file_and_position(records: FileRecords) -> None:
    records.append(made(0) + bytes(100))
    with pytest.raises(CorruptRecordError, match=rf"position {len(made(0))} of .*0\.log"):
        list(records.batch_headers())


def test_offsets_are_found_by_the_batch_that_holds_or_follows_them(records: FileRecords) -> None:
    first, second = made(0), made(10)
    records.append(first + second)
    for target, position in ((0, 0), (2, 0), (3, len(first)), (12, len(first))):
        found = records.search_for_offset(target)
        assert found is not None
        assert found.position == position
    assert records.search_for_offset(13) is None
    found = records.search_for_offset(0, len(first))
    assert found is not None
    assert (found.position, found.size, found.last_offset) == (len(first), len(second), 12)


def test_timestamps_are_found_by_record(records: FileRecords) -> None:
    records.append(made(0, timestamp=1000) + made(3, timestamp=2000))
    found = records.search_for_timestamp(1001)
    assert found is not None
    assert (found.timestamp_ms, found.offset, found.leader_epoch) == (1001, 1, 5)
    found = records.search_for_timestamp(1001, from_offset=2)
    assert found is not None
    assert found.offset == 2
    found = records.search_for_timestamp(1500)
    assert found is not None
    assert (found.timestamp_ms, found.offset) == (2000, 3)
    assert records.search_for_timestamp(3000) is None


def test_truncating_cuts_the_end_off(records: FileRecords) -> None:
    records.append(made(0) + made(3))
    assert records.truncate_to(len(made(0))) == len(made(3))
    assert records.truncate_to(records.size) == 0
    assert records.path.stat().st_size == records.size == len(made(0))
    records.append(made(3))
    assert [header.base_offset for header in records.batch_headers()] == [0, 3]
    for size in (-1, records.size + 1):
        with pytest.raises(ValueError):
            records.truncate_to(size)


def test_a_write_that_fails_half_way_leaves_nothing_behind(
    records: FileRecords, monkeypatch: pytest.MonkeyPatch
) -> None:
    records.append(made(0))
    before = records.size
    pwritev = os.pwritev

    def full(fd: int, buffers: Any, at: int) -> int:
        if at > before:
            raise OSError(errno.ENOSPC, "full")
        return pwritev(fd, [buffers[0][:40]], at)

    monkeypatch.setattr(os, "pwritev", full)
    with pytest.raises(OSError, match="full"):
        records.append(made(3))
    assert records.path.stat().st_size == records.size == before
    monkeypatch.undo()
    records.append(made(3))
    assert [header.base_offset for header in records.batch_headers()] == [0, 3]


def test_a_short_write_is_continued(records: FileRecords, monkeypatch: pytest.MonkeyPatch) -> None:
    pwritev = os.pwritev
    monkeypatch.setattr(os, "pwritev", lambda fd, buffers, at: pwritev(fd, [buffers[0][:7]], at))
    data = made(0)
    records.append([data[:20], data[20:]])
    assert records.read(0, records.size) == data


def test_renaming_keeps_the_file_open(records: FileRecords, tmp_path: Path) -> None:
    records.append(made(0))
    records.rename(tmp_path / "0.log.deleted")
    records.append(made(3))
    records.flush()
    assert records.path.name == "0.log.deleted"
    assert records.path.stat().st_size == records.size


def test_closing_is_final_and_may_be_repeated(records: FileRecords) -> None:
    records.append(made(0))
    records.close()
    records.close()
    for use in (lambda: records.read(0, 1), lambda: records.append(b"x"), records.flush):
        with pytest.raises(IllegalStateError, match="closed"):
            use()


def test_a_file_for_reading_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        FileRecords.open(tmp_path / "missing", writable=False)
