"""Idempotent and transactional producers in a log: retries, sequences, epochs, transactions and their markers."""

from __future__ import annotations

import pytest

from harness.broker.logs import LogHarness
from kclient.broker.log.log_types import FetchIsolation
from kclient.broker.log.producer_state import AppendOrigin
from kclient.errors import (
    InvalidProducerEpochError,
    InvalidTxnStateError,
    OutOfOrderSequenceError,
    TransactionCoordinatorFencedError,
)
from kclient.record import ControlRecordType, EndTransactionMarker, iter_batches


def marker(
    harness: LogHarness, pid: int, *, abort: bool, epoch: int = 0, coordinator_epoch: int = 1
) -> bytes:
    kind = ControlRecordType.ABORT if abort else ControlRecordType.COMMIT
    return EndTransactionMarker(kind, coordinator_epoch).batch(0, harness.time.wall_ms(), 0, pid, epoch)


def test_a_retried_batch_gets_its_first_offset_and_is_not_written_again(harness: LogHarness) -> None:
    log = harness.open()
    sent = [harness.batch([b"a", b"b"], pid=1, seq=2 * i) for i in range(6)]
    for batch in sent:
        log.append_as_leader(batch, 0)
    size = log.size
    info = log.append_as_leader(sent[1], 0)
    assert (info.first_offset, info.last_offset, info.is_duplicate) == (2, 3, True)
    assert (log.size, log.log_end_offset) == (size, 12)
    # The first is older than the five that are remembered: it looks like a sequence from the past.
    with pytest.raises(OutOfOrderSequenceError):
        log.append_as_leader(sent[0], 0)


def test_a_retry_is_known_even_if_all_records_were_deleted_and_the_broker_restarted(
    harness: LogHarness,
) -> None:
    log = harness.open()
    sent = harness.batch([b"a"], pid=1, seq=0)
    log.append_as_leader(sent, 0)
    log.delete_records_before(1)
    log.close()
    log = harness.open(clean=True, log_start_offset=1, recovery_point=log.flusher.recovery_point)
    info = log.append_as_leader(sent, 0)
    assert (info.is_duplicate, info.first_offset, log.log_end_offset) == (True, 0, 1)


def test_sequences_follow_each_other_and_new_epochs_begin_at_zero(harness: LogHarness) -> None:
    log = harness.open()
    log.append_as_leader(harness.batch([b"a"], pid=1, seq=41), 0)  # unknown producer: any sequence
    with pytest.raises(OutOfOrderSequenceError):
        log.append_as_leader(harness.batch([b"a"], pid=1, seq=43), 0)
    log.append_as_leader(harness.batch([b"a"], pid=1, seq=42), 0)
    with pytest.raises(OutOfOrderSequenceError):
        log.append_as_leader(harness.batch([b"a"], pid=1, epoch=1, seq=43), 0)
    log.append_as_leader(harness.batch([b"a"], pid=1, epoch=1, seq=0), 0)
    with pytest.raises(InvalidProducerEpochError):
        log.append_as_leader(harness.batch([b"a"], pid=1, epoch=0, seq=43), 0)
    assert log.log_end_offset == 3
    (state,) = log.producer_states()
    assert (state.producer_id, state.producer_epoch, state.last_sequence, state.last_offset) == (1, 1, 0, 2)


def test_sequences_wrap_around(harness: LogHarness) -> None:
    log = harness.open()
    last = 2**31 - 1
    log.append_as_leader(harness.batch([b"a", b"b", b"c"], pid=1, seq=last - 1), 0)
    log.append_as_leader(harness.batch([b"a"], pid=1, seq=1), 0)
    log.append_as_leader(harness.batch([b"a"], pid=2, seq=last), 0)
    log.append_as_leader(harness.batch([b"a"], pid=2, seq=0), 0)
    assert log.append_as_leader(harness.batch([b"a", b"b", b"c"], pid=1, seq=last - 1), 0).is_duplicate


def test_an_open_transaction_holds_the_last_stable_offset(harness: LogHarness) -> None:
    log = harness.open()
    log.append_as_leader(harness.batch([b"plain"]), 0)
    log.append_as_leader(harness.batch([b"t1", b"t1"], pid=1, transactional=True), 0)
    log.append_as_leader(harness.batch([b"t2"], pid=2, transactional=True), 0)
    assert (log.last_stable_offset, log.high_watermark) == (1, 4)
    committed = FetchIsolation.TXN_COMMITTED
    found = log.read(0, 1 << 20, isolation=committed)
    assert [batch.last_offset for batch in iter_batches(found.records)] == [0]
    assert found.aborted == []
    assert len(log.read(1, 1 << 20, isolation=committed).records) == 0
    log.append_as_leader(marker(harness, 1, abort=True), 0, origin=AppendOrigin.COORDINATOR)
    assert log.last_stable_offset == 3
    log.append_as_leader(marker(harness, 2, abort=False), 0, origin=AppendOrigin.COORDINATOR)
    assert log.last_stable_offset == log.log_end_offset == 6
    found = log.read(0, 1 << 20, isolation=committed)
    assert found.aborted == [(1, 1)]
    assert log.read(0, 1 << 20).aborted is None
    assert log.read(5, 1 << 20, isolation=committed).aborted == []


def test_an_abort_is_told_to_readers_of_earlier_segments(harness: LogHarness) -> None:
    log = harness.open()
    log.append_as_leader(harness.batch([b"t"], pid=1, transactional=True), 0)
    log.roll()
    log.append_as_leader(harness.batch([b"plain"]), 0)
    log.roll()
    log.append_as_leader(marker(harness, 1, abort=True), 0, origin=AppendOrigin.COORDINATOR)
    assert log.read(0, 1 << 20, isolation=FetchIsolation.TXN_COMMITTED).aborted == [(1, 0)]
    # A reader who begins in the middle of a transaction has to know of it too.
    assert log.read(1, 1 << 20, isolation=FetchIsolation.TXN_COMMITTED).aborted == [(1, 0)]
    assert log.read(2, 1 << 20, isolation=FetchIsolation.TXN_COMMITTED).aborted == [(1, 0)]
    log.append_as_leader(harness.batch([b"plain"]), 0)
    assert log.read(3, 1 << 20, isolation=FetchIsolation.TXN_COMMITTED).aborted == []


def test_a_producer_may_not_leave_its_transaction_and_old_coordinators_are_fenced(
    harness: LogHarness,
) -> None:
    log = harness.open()
    log.append_as_leader(harness.batch([b"t"], pid=1, transactional=True), 0)
    with pytest.raises(InvalidTxnStateError):
        log.append_as_leader(harness.batch([b"x"], pid=1, seq=1), 0)
    log.append_as_leader(
        marker(harness, 1, abort=False, coordinator_epoch=5), 0, origin=AppendOrigin.COORDINATOR
    )
    with pytest.raises(TransactionCoordinatorFencedError):
        log.append_as_leader(
            marker(harness, 1, abort=False, coordinator_epoch=4), 0, origin=AppendOrigin.COORDINATOR
        )
    assert log.log_end_offset == 2
