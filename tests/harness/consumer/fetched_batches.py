"""Record batches as a broker answers a fetch with them."""

from __future__ import annotations

from typing import Any

from kclient._accel import crc32c
from kclient.record import ControlRecordType, EndTransactionMarker, MemoryRecordsBuilder

TIME_MS = 1_700_000_000_000
_EPOCH = 5


def batch(base_offset: int, count: int, **settings: Any) -> bytes:
    """`count` records without key, whose values are their offsets; each is of the time TIME_MS and its offset."""
    builder = MemoryRecordsBuilder(base_offset=base_offset, partition_leader_epoch=_EPOCH, **settings)
    for offset in range(base_offset, base_offset + count):
        builder.append(TIME_MS + offset, None, b"%d" % offset)
    return builder.close()


def not_compressed(codec: int) -> bytes:
    """Three records that are said to be compressed by the codec of that number, and are not; the checksum fits."""
    odd = bytearray(batch(0, 3))
    odd[22] |= codec  # attributes
    odd[17:21] = crc32c(odd[21:]).to_bytes(4, "big")
    return bytes(odd)


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
