"""Dirty is what came after the last round; cleanable is that up to what has to stay as it is."""

from __future__ import annotations

import pytest

from harness.broker.cleaning import put
from harness.broker.logs import LogHarness
from kclient.broker.log.cleaner.log_to_clean import LogToClean, look_at
from kclient.broker.log.config import LogConfig
from kclient.broker.log.unified_log import UnifiedLog


def opened(harness: LogHarness, segments: int, **settings: object) -> UnifiedLog:
    """A log with one record in each of so many segments, a millisecond apart, and an empty active one."""
    log = harness.open(LogConfig(cleanup_policy=("compact",), **settings), clean=True)
    for i in range(segments):
        put(harness, log, (b"k", b"%d" % i))
        harness.time.advance(1)
        log.roll()
    return log


def look(harness: LogHarness, log: UnifiedLog, cleaned_to: int | None = None) -> LogToClean:
    return look_at(log, cleaned_to, harness.time.wall_ms())


def bounds(found: LogToClean) -> tuple[int, int]:
    return found.first_dirty_offset, found.first_uncleanable_offset


def test_all_is_dirty_up_to_the_active_segment(harness: LogHarness) -> None:
    log = opened(harness, 3)
    found = look(harness, log)
    assert (bounds(found), found.cleanable_bytes, found.cleanable_ratio) == ((0, 3), log.size, 1.0)
    assert found.is_due


def test_what_was_cleaned_is_not_dirty(harness: LogHarness) -> None:
    found = look(harness, opened(harness, 4), 3)
    assert (bounds(found), found.cleanable_ratio) == ((3, 4), 0.25)
    assert not found.is_due


def test_a_log_is_due_above_the_ratio_and_not_at_it(harness: LogHarness) -> None:
    log = opened(harness, 4)
    assert not look(harness, log, 2).is_due
    assert look(harness, log, 1).is_due


@pytest.mark.parametrize("cleaned_to", [0, 99])
def test_a_checkpoint_outside_the_log_means_that_all_is_dirty(harness: LogHarness, cleaned_to: int) -> None:
    log = opened(harness, 4)
    log.delete_records_before(1)
    assert bounds(look(harness, log, cleaned_to)) == (1, 4)


def test_the_segment_of_an_open_transaction_cannot_be_cleaned(harness: LogHarness) -> None:
    log = opened(harness, 2)
    put(harness, log, (b"k", b"v"))
    put(harness, log, (b"k", b"v"), pid=1, transactional=True)
    log.roll()
    assert bounds(look(harness, log)) == (0, 2)


def test_what_is_too_young_cannot_be_cleaned(harness: LogHarness) -> None:
    log = opened(harness, 4, min_compaction_lag_ms=3)
    # The records are 4, 3, 2 and 1 ms old.
    assert bounds(look(harness, log)) == (0, 2)
    harness.time.advance(1)
    assert bounds(look(harness, log)) == (0, 3)


def test_what_was_dirty_for_too_long_is_due_however_little_it_is(harness: LogHarness) -> None:
    log = opened(harness, 4, max_compaction_lag_ms=10)
    harness.time.advance(9)
    assert (look(harness, log, 3).is_due, look(harness, log, 3).compaction_delay_ms) == (False, 0)
    harness.time.advance(1)
    assert (look(harness, log, 3).is_due, look(harness, log, 3).compaction_delay_ms) == (True, 1)
    assert not look(harness, log, 4).is_due


def test_a_segment_is_closed_before_its_records_are_dirty_for_too_long(harness: LogHarness) -> None:
    log = harness.open(LogConfig(cleanup_policy=("compact",), max_compaction_lag_ms=10), clean=True)
    for _ in range(2):
        put(harness, log, (b"k", b"v"))
        harness.time.advance(11)
    assert log.segment_base_offsets == [0, 1]
