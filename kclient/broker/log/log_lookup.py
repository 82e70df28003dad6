"""Questions about a log that go over its segments. They take no lock: the caller has pinned the segments."""

from __future__ import annotations

from collections.abc import Sequence

from kclient.broker.log.log_types import MAX_TIMESTAMP
from kclient.broker.log.segment import LogSegment


def search_timestamp(
    segments: Sequence[LogSegment], timestamp_ms: int, log_start_offset: int
) -> tuple[int, int, int | None] | None:
    """The first record that is not before a time, or with -3 the one with the greatest timestamp.

    Returns timestamp, offset and leader epoch, None if there is none. Raises OSError and
    `CorruptRecordError`.
    """
    candidates = list(segments)
    if timestamp_ms == MAX_TIMESTAMP:
        newest = max(candidates, key=lambda segment: segment.max_timestamp[0])
        timestamp_ms = newest.max_timestamp[0]
        if timestamp_ms < 0:
            return None
        candidates = [newest]
    for segment in candidates:
        if segment.max_timestamp[0] >= timestamp_ms:
            found = segment.offset_for_timestamp(timestamp_ms, log_start_offset)
            if found is not None:
                timestamp, offset, epoch = found
                return timestamp, offset, None if epoch < 0 else epoch
    return None


def collect_aborted(
    segments: Sequence[LogSegment], start_offset: int, upper_bound: int
) -> list[tuple[int, int]]:
    """Producer and first offset of the aborted transactions that touch [`start_offset`, `upper_bound`).

    `segments` begins with the one that holds `start_offset`: a transaction is in the index of the segment of
    its marker, which may come long after its records. Raises OSError.
    """
    aborted: list[tuple[int, int]] = []
    for segment in segments:
        found, complete = segment.txn_index.collect(start_offset, upper_bound)
        aborted += [(txn.producer_id, txn.first_offset) for txn in found]
        if complete:
            break
    return aborted
