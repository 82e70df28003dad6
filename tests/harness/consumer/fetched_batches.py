"""Record batches as a broker answers a fetch with them."""

from __future__ import annotations

from typing import Any

from kclient.record import ControlRecordType, EndTransactionMarker, MemoryRecordsBuilder

TIME_MS = 1_700_000_000_000
_EPOCH = 5


def batch(base_offset: int, count: int, **settings: Any) -> bytes:
    """`count` records without key, whose values are their offsets; each is of the time TIME_MS and its offset."""
    builder = MemoryRecordsBuilder(base_offset=base_offset, partition_leader_epoch=_EPOCH, **settings)
    for offset in range(base_offset, base_offset + count):
        builder.append(TIME_MS + offset, None, b"%d" % offset)
    return builder.close()


def transactional(producer_id: int, base_offset: int, count: int) -> bytes:
    """The same, of a transaction of that producer."""
    return batch(
        base_offset,
        count,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )


def marker(producer_id: int, offset: int, kind: ControlRecordType, leader_epoch: int = _EPOCH) -> bytes:
    """The end of that producer's transaction."""
    return EndTransactionMarker(kind, 0).batch(offset, TIME_MS, leader_epoch, producer_id, 0)
