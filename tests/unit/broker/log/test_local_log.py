"""The segments of a log: which of them holds an offset, how they are begun and how they go."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.broker.logs import TP, LogHarness
from kclient.broker.log.config import LogConfig
from kclient.broker.log.local_log import LocalLog
from kclient.errors import IllegalStateError
from kclient.record import RecordBatch, iter_batches
from kclient.record.open_files import OpenFiles


@pytest.fixture
def local(harness: LogHarness) -> Iterator[LocalLog]:
    made = LocalLog(TP, harness.directory, LogConfig(), harness.time, OpenFiles(8))
    made.open_segment(0)
    yield made
    for segment in made.segments:
        segment.close_files()


def append(local: LocalLog, harness: LogHarness, count: int = 1) -> int:
    """Append a batch of `count` records at the end; returns its size."""
    data = bytearray(harness.batch([b"v"] * count))
    (batch,) = iter_batches(memoryview(data))
    assert isinstance(batch, RecordBatch)
    batch.set_base_offset(local.log_end_offset)
    local.append(memoryview(data), [batch])
    return len(data)


def three_segments(local: LocalLog, harness: LogHarness) -> int:
    """Segments from 0, 10 and 20 on, each with one batch of ten records; returns the size of one."""
    size = append(local, harness, 10)
    for _ in range(2):
        local.roll()
        append(local, harness, 10)
    return size


def bases(local: LocalLog) -> list[int]:
    return local.segments.base_offsets


def files(harness: LogHarness, suffix: str) -> list[str]:
    return sorted(path.name for path in harness.directory.iterdir() if path.name.endswith(suffix))


class TestSegments:
    def test_they_are_in_order_whatever_the_order_in_which_they_were_opened(self, local: LocalLog) -> None:
        for base in (30, 10, 20):
            local.open_segment(base)
        assert bases(local) == [segment.base_offset for segment in local.segments] == [0, 10, 20, 30]
        assert (local.segments.first.base_offset, local.segments.active.base_offset) == (0, 30)
        assert len(local.segments) == 4
        assert 20 in local.segments
        assert 21 not in local.segments

    @pytest.mark.parametrize(
        ("offset", "floor", "higher", "from_it"),
        [
            (5, None, 10, [10, 20]),
            (10, 10, 20, [10, 20]),
            (19, 10, 20, [10, 20]),
            (20, 20, None, [20]),
            (99, 20, None, [20]),
        ],
    )
    def test_the_one_with_an_offset_and_those_behind_it_are_found(
        self, local: LocalLog, offset: int, floor: int | None, higher: int | None, from_it: list[int]
    ) -> None:
        local.segments.remove(0).close_files()
        for base in (10, 20):
            local.open_segment(base)
        found = local.segments.floor(offset), local.segments.higher(offset)
        assert [None if each is None else each.base_offset for each in found] == [floor, higher]
        assert [segment.base_offset for segment in local.segments.from_offset(offset)] == from_it

    def test_an_offset_has_one_segment(self, local: LocalLog) -> None:
        with pytest.raises(IllegalStateError, match="0 already"):
            local.segments.add(local.segments.first)
        assert len(local.segments) == 1

    def test_walking_over_them_bears_that_some_go_meanwhile(
        self, local: LocalLog, harness: LogHarness
    ) -> None:
        three_segments(local, harness)
        seen = []
        for segment in local.segments:
            seen.append(segment.base_offset)
            if segment.base_offset < 20:
                local.detach([segment])
        assert seen == [0, 10, 20]
        assert bases(local) == [20]


def test_what_is_appended_goes_to_the_active_segment_and_moves_the_end(
    local: LocalLog, harness: LogHarness
) -> None:
    size = append(local, harness, 3)
    assert local.log_end_offset == 3
    local.roll()
    append(local, harness, 3)
    assert local.log_end_offset == 6
    assert [segment.size for segment in local.segments] == [size, size]
    assert local.size == 2 * size


def test_a_new_segment_begins_at_the_end_and_has_files_of_that_name(
    local: LocalLog, harness: LogHarness
) -> None:
    three_segments(local, harness)
    assert bases(local) == [0, 10, 20]
    assert files(harness, ".log") == [f"{base:020d}.log" for base in (0, 10, 20)]


def test_an_old_segment_whose_index_cannot_be_written_is_not_followed_by_a_new_one(
    local: LocalLog, harness: LogHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(local, harness)

    def full(self: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(type(local.segments.active), "become_inactive", full)
    with pytest.raises(OSError, match="full"):
        local.roll()
    assert bases(local) == [0]
    assert files(harness, ".log") == ["00000000000000000000.log"]


def test_rolling_while_the_active_segment_is_empty_puts_a_fresh_one_in_its_place(local: LocalLog) -> None:
    before = local.segments.active
    fresh = local.roll()
    assert fresh is not before
    assert bases(local) == [0]
    assert local.segments.active is fresh
    assert fresh.path.exists()


def test_a_segment_with_records_is_not_replaced(local: LocalLog, harness: LogHarness) -> None:
    append(local, harness)
    with pytest.raises(IllegalStateError, match="not empty"):
        local.replace_empty_active(local.segments.active)
    assert local.segments.active.path.exists()


def test_segments_that_are_taken_out_are_marked_as_deleted_and_readers_finish(
    local: LocalLog, harness: LogHarness
) -> None:
    size = three_segments(local, harness)
    first, second, _ = local.pin_from(5)
    local.detach([first, second])
    assert bases(local) == [20]
    assert len(files(harness, ".log.deleted")) == 2
    found = first.read(0, 1 << 20, size, min_one_batch=True)
    assert found is not None
    assert (found[0], len(found[1])) == (0, size)
    for segment in (first, second):
        segment.unpin()
    local.segments.active.unpin()


def test_only_what_may_hold_an_offset_or_more_is_pinned(local: LocalLog, harness: LogHarness) -> None:
    three_segments(local, harness)
    pinned = local.pin_from(10)
    assert [segment.base_offset for segment in pinned] == [10, 20]
    assert [segment._pins for segment in local.segments] == [0, 1, 1]
    for segment in pinned:
        segment.unpin()


class TestDurableNames:
    """The directory is forced to disk when names in it have changed, and not otherwise."""

    @pytest.fixture
    def synced(self, local: LocalLog, monkeypatch: pytest.MonkeyPatch) -> list[object]:
        calls: list[object] = []
        monkeypatch.setattr("kclient.broker.log.file_system.fsync_dir", calls.append)
        local.sync_directory()
        assert calls == [local.directory.parent, local.directory], (
            "the first segment is new, as is the directory"
        )
        calls.clear()
        return calls

    def test_appends_change_no_names(
        self, local: LocalLog, harness: LogHarness, synced: list[object]
    ) -> None:
        append(local, harness)
        local.sync_directory()
        assert synced == []

    @pytest.mark.parametrize("change", ["roll", "detach"])
    def test_new_and_removed_segments_do_once(
        self, local: LocalLog, harness: LogHarness, synced: list[object], change: str
    ) -> None:
        append(local, harness)
        local.roll()
        if change == "detach":
            local.sync_directory()
            synced.clear()
            local.detach([local.segments.first])
        for _ in range(2):
            local.sync_directory()
        assert synced == [local.directory]

    def test_a_change_that_comes_while_the_directory_is_forced_to_disk_is_not_forgotten(
        self, local: LocalLog, synced: list[object], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def meanwhile(directory: object) -> None:
            synced.append(directory)
            if len(synced) == 1:
                local.open_segment(10)

        monkeypatch.setattr("kclient.broker.log.file_system.fsync_dir", meanwhile)
        local.open_segment(5)
        for _ in range(3):
            local.sync_directory()
        assert synced == [local.directory] * 2


def test_a_log_that_was_closed_is_opened_again_with_all_it_had(local: LocalLog, harness: LogHarness) -> None:
    size = three_segments(local, harness)
    local.close()
    again = LocalLog(TP, harness.directory, LogConfig(), harness.time, OpenFiles(8))
    for base in (0, 10, 20):
        again.open_segment(base)
    assert again.size == 3 * size
    for segment in again.segments:
        segment.close_files()
