"""Producers' state from batches: markers, and what is read again from segments and a snapshot."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.broker.logs import TP, LogHarness
from kclient.broker.log.config import LogConfig
from kclient.broker.log.local_log import LocalLog
from kclient.broker.log.producer_replay import rebuild_producer_state, replay_batch, transaction_marker
from kclient.broker.log.producer_state_manager import ProducerStateManager
from kclient.broker.log.transaction_index import AbortedTxn
from kclient.record import ControlRecordType, EndTransactionMarker, RecordBatch, iter_batches
from kclient.record.open_files import OpenFiles

ABORT, COMMIT = ControlRecordType.ABORT, ControlRecordType.COMMIT


class Written:
    """Segments with batches in them, and no state of producers."""

    def __init__(self, harness: LogHarness) -> None:
        self.harness = harness
        self.local = LocalLog(TP, harness.directory, LogConfig(), harness.time, OpenFiles(8))
        self.local.open_segment(0)

    def data(self, pid: int, seq: int, *, transactional: bool = False) -> RecordBatch:
        return self._append(self.harness.batch([b"v"], pid=pid, seq=seq, transactional=transactional))

    def end(self, pid: int, kind: ControlRecordType, epoch: int = 0) -> RecordBatch:
        marker = EndTransactionMarker(kind, 3)
        return self._append(marker.batch(0, self.harness.time.wall_ms(), 0, pid, epoch))

    def plain(self) -> RecordBatch:
        return self._append(self.harness.batch([b"v", b"w"]))

    def _append(self, sent: bytes) -> RecordBatch:
        data = bytearray(sent)
        (batch,) = iter_batches(memoryview(data))
        assert isinstance(batch, RecordBatch)
        batch.set_base_offset(self.local.log_end_offset)
        self.local.append(memoryview(data), [batch])
        return batch

    def state(self) -> ProducerStateManager:
        return ProducerStateManager(TP, self.harness.directory)

    def rebuilt(self, end_offset: int, log_start_offset: int = 0) -> ProducerStateManager:
        state = self.state()
        now_ms = self.harness.time.wall_ms()
        rebuild_producer_state(state, self.local.segments, log_start_offset, end_offset, now_ms)
        return state


@pytest.fixture
def written(harness: LogHarness) -> Iterator[Written]:
    made = Written(harness)
    yield made
    for segment in made.local.segments:
        segment.close_files()


def test_batches_of_no_producer_only_move_the_state_along(written: Written) -> None:
    state = written.state()
    replay_batch(state, written.plain())
    assert (state.producers, state.map_end_offset) == ({}, 2)


def test_the_kind_of_a_marker_is_read_from_its_batch(written: Written) -> None:
    for kind in (ABORT, COMMIT):
        marker = transaction_marker(written.end(1, kind))
        assert marker is not None
        assert (marker.type, marker.coordinator_epoch) == (kind, 3)


def test_only_an_abort_goes_to_the_index_and_only_if_one_is_given(written: Written) -> None:
    state, aborted = written.state(), written.local.segments.active.txn_index
    for pid, kind, index in ((1, COMMIT, aborted), (2, ABORT, None), (3, ABORT, aborted)):
        replay_batch(state, written.data(pid, 0, transactional=True), index)
        replay_batch(state, written.end(pid, kind), index)
        state.on_high_watermark_updated(state.map_end_offset)
        assert state.first_unstable_offset is None
    assert aborted.entries == [AbortedTxn(3, 4, 5, 6)]


def test_an_abort_is_noted_with_the_oldest_transaction_that_is_still_open(written: Written) -> None:
    state, segment = written.state(), written.local.segments.active
    replay_batch(state, written.data(1, 0, transactional=True), segment.txn_index)
    replay_batch(state, written.data(2, 0, transactional=True), segment.txn_index)
    replay_batch(state, written.end(1, ABORT), segment.txn_index)
    assert segment.txn_index.entries == [AbortedTxn(1, 0, 2, 1)]
    state.on_high_watermark_updated(3)
    assert state.first_unstable_offset == 1


def test_a_marker_of_no_transaction_brings_the_epoch_and_ends_nothing(written: Written) -> None:
    state, segment = written.state(), written.local.segments.active
    replay_batch(state, written.end(1, ABORT, epoch=4), segment.txn_index)
    assert (state.producers[1].producer_epoch, state.producers[1].coordinator_epoch) == (4, 3)
    assert segment.txn_index.entries == []


def test_a_state_is_rebuilt_up_to_an_offset_and_no_further(written: Written) -> None:
    for seq in range(4):
        written.data(1, seq)
    for end in (1, 3, 4):
        for offset in written.state().snapshot_offsets():
            (written.harness.directory / f"{offset:020d}.snapshot").unlink()
        state = written.rebuilt(end)
        assert (state.producers[1].last_offset, state.map_end_offset) == (end - 1, end)


def test_the_state_where_a_segment_begins_is_written_for_the_next_time(written: Written) -> None:
    for seq in range(6):
        if seq in (2, 4):
            written.local.roll()
        written.data(1, seq)
    assert written.rebuilt(6).snapshot_offsets() == [2, 4]


def test_batches_before_the_newest_snapshot_are_not_read(written: Written) -> None:
    written.data(1, 0)
    written.local.roll()
    written.data(2, 0)
    state = written.state()
    state.map_end_offset = 1
    state.take_snapshot()
    assert sorted(written.rebuilt(2).producers) == [2], "the snapshot knows nothing of the first producer"


def test_batches_below_the_logs_start_are_not_read(written: Written) -> None:
    written.data(1, 0)
    written.data(2, 0)
    assert sorted(written.rebuilt(2, log_start_offset=1).producers) == [2]
