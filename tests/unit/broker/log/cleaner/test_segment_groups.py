"""Neighbouring segments are cleaned into one as long as that one can hold them."""

from __future__ import annotations

import pytest

from harness.broker.cleaning import put
from harness.broker.logs import LogHarness
from kclient.broker.log.cleaner.segment_groups import group_segments
from kclient.broker.log.config import LogConfig
from kclient.broker.log.segment import LogSegment


@pytest.fixture
def segments(harness: LogHarness) -> list[LogSegment]:
    """Six segments of three batches."""
    log = harness.open(LogConfig(cleanup_policy=("compact",), index_interval_bytes=0), clean=True)
    for i in range(6):
        for _ in range(3):
            put(harness, log, (b"k", b"%d" % i))
        log.roll()
    return log.compaction.segments()[:-1]


def groups(segments: list[LogSegment], end: int = 18, **settings: int) -> list[list[int]]:
    found = group_segments(segments, LogConfig(**settings), end)
    return [[one.base_offset for one in group] for group in found]


def test_all_that_fit_are_one_group(segments: list[LogSegment]) -> None:
    assert groups(segments, 18) == [[0, 3, 6, 9, 12, 15]]


def test_nothing_is_no_group() -> None:
    assert group_segments([], LogConfig(), 0) == []


def test_a_group_is_no_larger_than_a_segment(segments: list[LogSegment]) -> None:
    size = segments[0].size
    assert groups(segments, segment_bytes=2 * size) == [[0, 3], [6, 9], [12, 15]]
    assert groups(segments, segment_bytes=size - 1) == [[0], [3], [6], [9], [12], [15]]


def test_its_indexes_fit_too(segments: list[LogSegment]) -> None:
    # Two entries of 8 bytes for the offsets of a segment, and one of 12 for its times.
    assert groups(segments, segment_index_bytes=32) == [[0, 3], [6, 9], [12, 15]]


def test_its_offsets_fit_into_the_indexes(segments: list[LogSegment]) -> None:
    # The last segment may reach up to the end, whatever it really holds.
    assert groups(segments, 2**31) == [[0, 3, 6, 9, 12, 15]]
    assert groups(segments, 2**31 + 1) == [[0, 3, 6, 9, 12], [15]]
