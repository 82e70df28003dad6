"""From batches to producer state: the same steps for an append and for reading a log again."""

from __future__ import annotations

from collections.abc import Iterable

from kclient.broker.log.producer_state import (
    NO_PRODUCER_ID,
    AppendOrigin,
    CompletedTxn,
    ProducerAppendInfo,
)
from kclient.broker.log.producer_state_manager import ProducerStateManager
from kclient.broker.log.segment import LogSegment
from kclient.broker.log.transaction_index import AbortedTxn, TransactionIndex
from kclient.record.batch import RecordBatch
from kclient.record.control import ControlRecordType, EndTransactionMarker, parse_type

_ENDS = (ControlRecordType.ABORT, ControlRecordType.COMMIT)


def transaction_marker(batch: RecordBatch) -> EndTransactionMarker | None:
    """The marker in a control batch, None if it holds another control record or was emptied by compaction."""
    record = next(batch.records(), None)
    if record is None or parse_type(record.key) not in _ENDS:
        return None
    return EndTransactionMarker.parse(record)


def apply_batch(info: ProducerAppendInfo, batch: RecordBatch) -> CompletedTxn | None:
    """Put one batch into a draft of its producer's state; returns the transaction it ends.

    Raises what `ProducerAppendInfo` raises.
    """
    if not batch.is_control:
        info.append_data(batch)
        return None
    marker = transaction_marker(batch)
    if marker is None:
        return None
    return info.append_marker(marker, batch.producer_epoch, batch.base_offset, batch.max_timestamp_ms)


def complete_transactions(
    state: ProducerStateManager, index: TransactionIndex, completed: Iterable[CompletedTxn]
) -> None:
    """Note ended transactions, the aborted ones in a transaction index. Raises OSError."""
    for txn in completed:
        if txn.is_aborted:
            stable = state.last_stable_offset(txn)
            index.append(AbortedTxn(txn.producer_id, txn.first_offset, txn.last_offset, stable))
        state.complete_txn(txn)


def replay_batch(
    state: ProducerStateManager, batch: RecordBatch, index: TransactionIndex | None = None
) -> None:
    """Bring `state` past one batch of the log; aborted transactions go to `index` if it is given."""
    producer_id = batch.producer_id
    if producer_id != NO_PRODUCER_ID:
        info = state.prepare_update(producer_id, AppendOrigin.REPLICATION)
        completed = apply_batch(info, batch)
        state.update(info)
        if completed is not None:
            if index is not None:
                complete_transactions(state, index, [completed])
            else:
                state.complete_txn(completed)
    state.map_end_offset = batch.last_offset + 1


def rebuild_producer_state(
    state: ProducerStateManager,
    segments: Iterable[LogSegment],
    log_start_offset: int,
    end_offset: int,
    now_ms: int,
) -> None:
    """Make `state` that of the log at `end_offset`: from the newest usable snapshot and the batches after it.

    Snapshots are written where a segment begins, so that the next time less has to be read. Raises OSError and
    `CorruptRecordError`.
    """
    state.truncate_and_reload(log_start_offset, end_offset, now_ms)
    for segment in segments:
        if state.map_end_offset >= end_offset or segment.base_offset >= end_offset:
            break
        start = max(segment.base_offset, state.map_end_offset)
        position = segment.position_of(start)
        if position is None:
            continue
        if start == segment.base_offset:
            state.map_end_offset = start
            state.take_snapshot()
        for _, batch in segment.batches(position):
            if batch.base_offset >= end_offset:
                break
            replay_batch(state, batch)
    state.map_end_offset = end_offset
