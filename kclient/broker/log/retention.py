"""Segments that a log need not keep any more. Always a run of the oldest; never an empty active one."""

from __future__ import annotations

from collections.abc import Callable

from kclient.broker.log.config import LogConfig
from kclient.broker.log.local_log import LogSegments
from kclient.broker.log.segment import LogSegment


def expired(segments: LogSegments, config: LogConfig, now_ms: int) -> list[LogSegment]:
    """Segments whose newest record is older than retention.ms. Raises OSError."""
    if config.retention_ms < 0:
        return []
    return _oldest(segments, lambda segment: now_ms - segment.largest_timestamp_ms > config.retention_ms)


def surplus(segments: LogSegments, config: LogConfig) -> list[LogSegment]:
    """Segments without which the log still has retention.bytes."""
    if config.retention_bytes < 0:
        return []
    excess = sum(segment.size for segment in segments) - config.retention_bytes

    def is_surplus(segment: LogSegment) -> bool:
        nonlocal excess
        excess -= segment.size
        return excess >= 0

    return _oldest(segments, is_surplus)


def below(segments: LogSegments, log_start_offset: int) -> list[LogSegment]:
    """Segments that end before the log's start."""

    def is_below(segment: LogSegment) -> bool:
        following = segments.higher(segment.base_offset)
        return following is not None and following.base_offset <= log_start_offset

    return _oldest(segments, is_below)


def _oldest(segments: LogSegments, condition: Callable[[LogSegment], bool]) -> list[LogSegment]:
    found = []
    for segment in segments:
        if (segment is segments.active and segment.size == 0) or not condition(segment):
            break
        found.append(segment)
    return found
