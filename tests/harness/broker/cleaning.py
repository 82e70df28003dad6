"""Logs that are compacted a round at a time, and what readers find in them."""

from __future__ import annotations

from collections.abc import Callable

from harness.broker.logs import LogHarness, append_alone
from kclient.broker.log.cleaner.cleaner import Cleaner
from kclient.broker.log.cleaner.cleaner_stats import CleanerStats
from kclient.broker.log.cleaner.log_to_clean import look_at
from kclient.broker.log.cleaner.offset_map import OffsetMap
from kclient.broker.log.cleaner.throttler import Throttler
from kclient.broker.log.log_types import FetchIsolation
from kclient.broker.log.producer_state import AppendOrigin
from kclient.broker.log.unified_log import UnifiedLog
from kclient.common.topic_partition import TopicPartition
from kclient.record import ControlRecordType, EndTransactionMarker, Record, iter_batches
from kclient.record.batch import RecordBatch

UNLIMITED = 1.7e308


def nothing(_tp: TopicPartition) -> None:
    """Let a round go on."""


def clean(
    harness: LogHarness,
    log: UnifiedLog,
    cleaned_to: int | None = None,
    *,
    keys: int = 1000,
    check: Callable[[TopicPartition], None] = nothing,
) -> tuple[int, CleanerStats]:
    """Clean everything but the active segment in one round, with an offset map for so many keys."""
    cleaner = Cleaner(OffsetMap(keys), Throttler(UNLIMITED, harness.time), harness.time, check)
    return cleaner.clean(look_at(log, cleaned_to, harness.time.wall_ms()))


def put(
    harness: LogHarness, log: UnifiedLog, *pairs: tuple[bytes | None, bytes | None], **options: object
) -> int:
    """Append pairs of key and value as one batch; returns its first offset."""
    keys, values = [key for key, _ in pairs], [value for _, value in pairs]
    batch = harness.batch(values, keys=keys, **options)  # type: ignore[arg-type]
    return append_alone(log, batch, origin=AppendOrigin.REPLICATION).first_offset


def end_transaction(harness: LogHarness, log: UnifiedLog, pid: int, *, commit: bool, epoch: int = 0) -> int:
    """Append a marker; returns its offset."""
    kind = ControlRecordType.COMMIT if commit else ControlRecordType.ABORT
    marker = EndTransactionMarker(kind, 0).batch(0, harness.time.wall_ms(), 0, pid, epoch)
    return append_alone(log, marker, origin=AppendOrigin.COORDINATOR).first_offset


def batches_of(log: UnifiedLog) -> list[RecordBatch]:
    """Every batch of the log."""
    found = []
    for segment in log.compaction.segments():
        for _, batch in segment.batches():
            batch.ensure_valid()
            found.append(batch)
    return found


def pairs_of(log: UnifiedLog) -> list[tuple[int, bytes | None, bytes | None]]:
    """Offset, key and value of every data record, of whatever transaction."""
    return [
        (record.offset, record.key, record.value)
        for batch in batches_of(log)
        if not batch.is_control
        for record in batch.records()
    ]


def committed(log: UnifiedLog, max_bytes: int = 1 << 20) -> list[Record]:
    """Return what a consumer with isolation.level=read_committed reads from the log's start on."""
    offset, found = log.log_start_offset, []
    while offset < log.last_stable_offset:
        info = log.read(offset, max_bytes, isolation=FetchIsolation.TXN_COMMITTED)
        aborted = sorted(info.aborted or (), key=lambda one: one[1])
        in_aborted: set[int] = set()
        batches = list(iter_batches(info.content()))
        if not batches:
            break
        for batch in batches:
            while aborted and aborted[0][1] <= batch.last_offset:
                in_aborted.add(aborted.pop(0)[0])
            offset = batch.next_offset
            if batch.is_control:
                in_aborted.discard(batch.producer_id)
            elif not (batch.is_transactional and batch.producer_id in in_aborted):
                found += [record for record in batch.records() if record.offset >= log.log_start_offset]
    return found


def last_values(log: UnifiedLog) -> dict[bytes, bytes]:
    """The table that the log stands for: the last value of each key, as committed."""
    table: dict[bytes, bytes | None] = {}
    for record in committed(log):
        assert record.key is not None
        table[record.key] = record.value
    return {key: value for key, value in table.items() if value is not None}
