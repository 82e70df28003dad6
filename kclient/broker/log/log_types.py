"""Arguments and results of a log's methods."""

from __future__ import annotations

from enum import Enum

import attrs

from kclient.broker.log.record_slice import RecordSlice

LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL_TIMESTAMP = -4
LATEST_TIERED_TIMESTAMP = -5


class FetchIsolation(Enum):
    """The limit up to which a reader may read."""

    LOG_END = "log_end"
    """All there is: for followers and the broker itself."""
    HIGH_WATERMARK = "high_watermark"
    """Records that every in-sync replica has."""
    TXN_COMMITTED = "txn_committed"
    """Records below every open transaction; aborted transactions are named."""


UNKNOWN_POSITION = -1


@attrs.frozen
class LogOffsetMetadata:
    """An offset and, where it is known, its place: the segment and the position of the batch there. Immutable."""

    offset: int
    segment_base_offset: int = UNKNOWN_POSITION
    position: int = UNKNOWN_POSITION


@attrs.frozen
class LogAppendInfo:
    """The result of an append; for a duplicate, the result of the first one. Immutable.

    `log_append_time_ms` is -1 unless the topic's timestamps are the broker's.
    """

    first_offset: int
    last_offset: int
    max_timestamp_ms: int
    log_append_time_ms: int
    log_start_offset: int
    is_duplicate: bool
    size_bytes: int


@attrs.frozen
class FetchDataInfo:
    """The result of a read: batches as they are on disk, the last of which may be cut, and the log's offsets.

    Immutable.
    """

    offset: int
    records: memoryview | RecordSlice
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: list[tuple[int, int]] | None

    def content(self) -> memoryview:
        """The batches in memory, read now if they were not before. Raises OSError."""
        return memoryview(self.records.read()) if isinstance(self.records, RecordSlice) else self.records
