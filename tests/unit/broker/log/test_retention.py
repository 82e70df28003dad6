"""Start of a log and removal of its oldest segments: limits, their order, and what goes with them."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import pytest

from harness.broker.logs import TP, LogHarness
from kclient.broker.log.checkpoints import EpochCheckpoint
from kclient.broker.log.config import LogConfig
from kclient.broker.log.epoch_cache import LeaderEpochCache
from kclient.broker.log.local_log import LocalLog
from kclient.broker.log.producer_state_manager import ProducerStateManager
from kclient.broker.log.retention import LogRetention
from kclient.record import RecordBatch, iter_batches
from kclient.record.open_files import OpenFiles

KEEP = LogConfig(retention_ms=-1, retention_bytes=-1)


class Retained:
    """A log of one-record segments, each of its own leader epoch, in the active one of which is a record as well."""

    def __init__(self, harness: LogHarness) -> None:
        self.harness = harness
        self.local = LocalLog(TP, harness.directory, KEEP, harness.time, OpenFiles(8))
        self.local.open_segment(0)
        self.producers = ProducerStateManager(TP, harness.directory)
        self.epochs = LeaderEpochCache(TP, EpochCheckpoint(harness.directory / "epochs"))
        self.roll_error: OSError | None = None
        self.retention = LogRetention(
            self.local, self.producers, self.epochs, harness.scheduler, self.roll, log_start_offset=0
        )

    def roll(self) -> None:
        if self.roll_error is not None:
            raise self.roll_error
        self.local.roll()

    def fill(self, *timestamps_ms: int) -> int:
        """Segments with records of these times; returns the size of one."""
        size = 0
        for timestamp_ms in timestamps_ms:
            offset = self.local.log_end_offset
            if offset:
                self.local.roll()
            data = bytearray(self.harness.batch([b"v"], timestamp_ms=timestamp_ms))
            (batch,) = iter_batches(memoryview(data))
            assert isinstance(batch, RecordBatch)
            batch.set_base_offset(offset)
            self.epochs.assign(offset, offset)
            self.local.append(memoryview(data), [batch])
            self.producers.map_end_offset = offset + 1
            self.producers.take_snapshot()
            size = len(data)
        return size

    def delete(
        self, config: LogConfig, now_ms: int = 10_000, *, high_watermark: int | None = None
    ) -> tuple[int, list[int]]:
        """The number of segments that went, and the ones that are left. The high watermark is the end by default."""
        self.local.config = config
        limit = self.local.log_end_offset if high_watermark is None else high_watermark
        return self.retention.delete_old_segments(now_ms, limit), self.local.segments.base_offsets


@pytest.fixture
def log(harness: LogHarness) -> Iterator[Retained]:
    made = Retained(harness)
    yield made
    for segment in made.local.segments:
        segment.close_files()


def test_the_start_never_goes_back_and_takes_the_epochs_along(log: Retained) -> None:
    log.fill(1000, 1000, 1000)
    log.retention.move_start(2, "test")
    for offset in (2, 1, -1):
        log.retention.move_start(offset, "test")
    assert log.retention.log_start_offset == 2
    assert log.epochs.entries == [(2, 2)]
    assert log.local.segments.base_offsets == [0, 1, 2], "segments go with the next look at them"


def test_a_segment_is_kept_until_it_is_more_than_retention_ms_old(log: Retained) -> None:
    log.fill(1000, 2000, 3000)
    config = LogConfig(retention_ms=500, retention_bytes=-1)
    assert log.delete(config, now_ms=1500) == (0, [0, 1, 2])
    assert log.delete(config, now_ms=1501) == (1, [1, 2])
    assert log.retention.log_start_offset == 1


def test_an_old_segment_behind_one_that_is_kept_is_kept_too(log: Retained) -> None:
    log.fill(1000, 9900, 1000, 9900)
    assert log.delete(LogConfig(retention_ms=500, retention_bytes=-1)) == (1, [1, 2, 3])


def test_what_is_too_old_does_not_count_for_retention_bytes(log: Retained) -> None:
    size = log.fill(1000, 9900, 9900, 9900)
    assert log.delete(LogConfig(retention_ms=500, retention_bytes=2 * size)) == (2, [2, 3])
    assert log.retention.log_start_offset == 2


def test_retention_bytes_of_none_at_all_leaves_an_empty_segment(log: Retained) -> None:
    log.fill(1000, 1000)
    assert log.delete(LogConfig(retention_ms=-1, retention_bytes=0)) == (2, [2])
    assert (log.local.size, log.retention.log_start_offset) == (0, 2)
    assert log.delete(LogConfig(retention_ms=-1, retention_bytes=0)) == (0, [2]), "and it stays"


def test_a_segment_goes_below_the_start_once_no_record_of_it_is_left(log: Retained) -> None:
    log.fill(1000, 1000, 1000)
    log.retention.move_start(1, "test")
    assert log.delete(KEEP) == (1, [1, 2])
    log.retention.move_start(3, "test")
    assert log.delete(KEEP) == (1, [2]), "the active segment is not below a start that is the log's end"
    assert log.retention.log_start_offset == 3


def test_nothing_goes_if_the_segment_that_takes_its_place_cannot_be_made(log: Retained) -> None:
    log.fill(1000, 1000)
    log.roll_error = OSError(28, "No space left on device")
    with pytest.raises(OSError, match="No space"):
        log.delete(LogConfig(retention_ms=0))
    assert (log.local.segments.base_offsets, log.retention.log_start_offset) == ([0, 1], 0)
    log.roll_error = None
    assert log.delete(LogConfig(retention_ms=0)) == (2, [2])


def test_the_snapshot_of_a_segment_goes_with_it_after_the_delay(log: Retained, harness: LogHarness) -> None:
    log.fill(1000, 1000, 9900)
    assert log.producers.snapshot_offsets() == [1, 2, 3]
    log.delete(LogConfig(retention_ms=500, file_delete_delay_ms=100))
    assert log.producers.snapshot_offsets() == [2, 3]
    marked = harness.directory / f"{1:020d}.snapshot.deleted"
    harness.run_due(99)
    assert marked.exists()
    harness.run_due(1)
    assert not list(harness.directory.glob("*.deleted"))


@pytest.mark.parametrize(("high_watermark", "left"), [(0, [0, 1, 2]), (1, [1, 2]), (2, [2]), (3, [3])])
def test_what_lies_above_the_high_watermark_is_kept_however_old(
    log: Retained, high_watermark: int, left: list[int]
) -> None:
    log.fill(1000, 1000, 1000)
    config = attrs.evolve(KEEP, retention_ms=1)
    assert log.delete(config, high_watermark=high_watermark)[1] == left
